import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SlurmLabOptions } from "./lab/slurm-config.ts";
import { startSlurm } from "./lab/slurm.ts";
import type { BootedPilots } from "./pilot-suite.ts";

/** A node that was switched off comes back with an empty temporary directory. */
const clearScratch = async (home: string): Promise<void> => {
  const tmp = join(dirname(home), "tmp");
  for (const name of await readdir(tmp)) await rm(join(tmp, name), { recursive: true, force: true });
};

/** A Slurm for the suite of pilots: three nodes of two cores. */
export const bootForPilots = async (options: SlurmLabOptions = {}): Promise<BootedPilots> => {
  const lab = await startSlurm({ nodes: 3, cpus: 2, bigNodes: 0, plainNodes: 0, gpus: {}, ...options });
  const [user] = options.users ?? [];
  let home = "";
  const listed = async (format: string, ...words: readonly string[]): Promise<string[]> => {
    const { stdout } = await lab.run(["squeue", "--noheader", "--format", format, ...words]);
    return stdout.split("\n").filter((line) => line !== "");
  };
  return {
    cluster: { type: "slurm", config: lab.env["SLURM_CONF"] },
    queue: { partition: "batch", nodes: 1, cores: 2, memory: "500M" },
    wrong: { keys: { partition: "nowhere" }, words: /invalid partition specified: nowhere/ },
    shortWalltime: 12,
    ...(user === undefined ? {} : { user }),
    // a directory of this machine would mean nothing on separate nodes
    ...(options.apart === true ? { under: lab.shared, env: { TMPDIR: undefined } } : {}),
    onHome: (path) => {
      home = path;
    },
    cancelJob: async (id) => {
      await lab.run(["scancel", id]);
    },
    killNodeOf: async (id) => {
      const [host = ""] = await listed("%N", "--jobs", id);
      await lab.killNode(host);
      // the administrator is quicker than Slurm, which takes half a minute; the tests of pilots' states cover that
      await lab.downNode(host);
      return async () => {
        await clearScratch(home);
        await lab.startNode(host);
        await lab.upNode(host);
      };
    },
    livingJobs: () => listed("%A"),
    stop: () => lab.stop(),
  };
};
