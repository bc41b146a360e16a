import { hostname } from "node:os";
import { expect } from "vitest";
import { parseQstat, type SgeRow } from "../../src/managers/sge/driver/parse.ts";
import { until } from "../until.ts";
import { type SgeLab, skipReason, startSge } from "./lab/sge.ts";
import { pilotSuite } from "./pilot-suite.ts";

const NODES = 3;
let lab: SgeLab;
const jobs = async (): Promise<SgeRow[]> => parseQstat((await lab.run(["qstat", "-xml", "-u", "*"])).stdout);

pilotSuite({
  name: "Grid Engine",
  unavailable: skipReason(),
  plain: { nodes: 1, cores: 1 },
  together: true,
  // state Eqw
  stuck: { keys: { "skip-options": ["-cwd"], options: ["-wd /no/such/place"] }, words: /chdir to \/no\/such\/place/ },
  also: {
    "row 001-40: the manager decides for all users when a pilot runs, and its tasks run on the manager's hosts, not here":
      async (output) => {
        const words = ["qsub", "-terse", "-b", "y", "-o", "/dev/null", "-e", "/dev/null", "-pe", "smp", "2"];
        const strangers: string[] = [];
        for (let i = 0; i < NODES; i++) strangers.push((await lab.run([...words, "/bin/sleep", "1000"])).stdout.trim());
        try {
          await until(
            "all nodes to be taken",
            async () =>
              (await jobs()).filter(({ id, host }) => strangers.includes(id) && host !== undefined).length === NODES,
          );
          const said = output("hostname");
          said.catch(() => undefined);
          const pilot = await until("our pilot", async () => (await jobs()).find(({ id }) => !strangers.includes(id)));
          await until("Grid Engine to say why it waits", async () =>
            /cannot run/.test((await lab.run(["qstat", "-j", pilot.id])).stdout),
          );
          expect((await jobs()).find(({ id }) => id === pilot.id)).not.toHaveProperty("host");
          const { host } = (await jobs()).find(({ id }) => id === strangers[1])!;
          await lab.run(["qdel", strangers[1]!]);
          expect((await said).trim()).toBe(host);
          expect(host).not.toBe(hostname());
        } finally {
          await lab.run(["qdel", ...strangers]);
        }
        await until("all jobs to end", async () => (await jobs()).length === 0);
      },
  },
  boot: async () => {
    lab = await startSge({ nodes: NODES, slots: 2 });
    const { SGE_ROOT: root, SGE_CELL: cell, SGE_QMASTER_PORT, SGE_EXECD_PORT } = lab.env;
    return {
      cluster: { type: "sge", bin: lab.bin, root, cell, cluster: "lab" },
      queue: {
        nodes: 1,
        cores: 2,
        memory: "500M",
        "parallel-environment": "smp",
        "mem-resource": "mem_mb",
      },
      pair: { "parallel-environment": "two" },
      // what a site's profile sets
      env: { SGE_QMASTER_PORT, SGE_EXECD_PORT },
      wrong: { keys: { partition: "nowhere.q" }, words: /unknown queue "nowhere\.q"/ },
      shortWalltime: 20,
      cancelJob: async (id) => {
        await lab.run(["qdel", id]);
      },
      killNodeOf: async (id) => {
        const host = (await jobs()).find((job) => job.id === id)!.host!;
        await lab.killNode(host);
        // until the node is back, Grid Engine believes that the job runs
        await lab.startNode(host);
        return async () => undefined;
      },
      livingJobs: async () => (await jobs()).map(({ id }) => id),
      stop: () => lab.stop(),
    };
  },
});
