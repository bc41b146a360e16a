import { parseQstat, type SgeRow } from "../../src/managers/sge/driver/parse.ts";
import { skipReason, startSge } from "./lab/sge.ts";
import { pilotSuite } from "./pilot-suite.ts";

pilotSuite({
  name: "Grid Engine",
  unavailable: skipReason(),
  plain: { nodes: 1, cores: 1 },
  // state Eqw
  stuck: { keys: { "skip-options": ["-cwd"], options: ["-wd /no/such/place"] }, words: /chdir to \/no\/such\/place/ },
  boot: async () => {
    const lab = await startSge({ nodes: 3, slots: 2 });
    const { SGE_ROOT: root, SGE_CELL: cell, SGE_QMASTER_PORT, SGE_EXECD_PORT } = lab.env;
    const jobs = async (): Promise<SgeRow[]> => parseQstat((await lab.run(["qstat", "-xml", "-u", "*"])).stdout);
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
