import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseOarstat, type OarJob } from "../../src/managers/oar/driver/parse.ts";
import { skipReason, startOar } from "./lab/oar.ts";
import { pilotSuite } from "./pilot-suite.ts";

pilotSuite({
  name: "OAR",
  unavailable: skipReason(),
  plain: { nodes: 1, cores: 1, keys: { "resource-spec": "/nodes=1/core=1" } },
  boot: async () => {
    const lab = await startOar({ nodes: 3, cores: 2 });
    // what a node leaves in its scratch when it loses its power is removed with the lab
    const scratch = join(lab.root, "scratch");
    await mkdir(scratch);
    await chmod(scratch, 0o1777);
    const jobs = async (): Promise<OarJob[]> => parseOarstat((await lab.run(["oarstat", "-J", "-f"])).stdout);
    return {
      // OAR accepts no jobs from root
      user: lab.user,
      cluster: { type: "oar", scratch },
      queue: { nodes: 1, cores: 2, memory: "500M", "memory-per-core-property-name": "memcore" },
      wrong: { keys: { partition: "nowhere" }, words: /The queue nowhere does not exist/ },
      shortWalltime: 20,
      cancelJob: async (id) => {
        await lab.run(["oardel", id]);
      },
      killNodeOf: async (id) => {
        const [host = ""] = (await jobs()).find((job) => job.id === id)!.hosts;
        await lab.killNode(host);
        // unless the administrator says otherwise, OAR believes until the end of the walltime that the job runs
        await lab.run(["oarnodesetting", "-h", host, "-s", "Absent"]);
        return () => lab.startNode(host);
      },
      livingJobs: async () => (await jobs()).map(({ id }) => id),
      stop: () => lab.stop(),
    };
  },
});
