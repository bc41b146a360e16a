import { join } from "node:path";
import { parseJson, type Records } from "../../src/managers/pbs/driver/parse.ts";
import { hostsOf } from "../../src/managers/pbs/driver/status.ts";
import { startPbs } from "./lab/pbs.ts";
import { pilotSuite } from "./pilot-suite.ts";

pilotSuite({
  name: "PBS",
  tellsFirst: true,
  together: true,
  plain: { nodes: 2, cores: 1 },
  boot: async () => {
    const lab = await startPbs({ nodes: 3, killMs: 3000, sistersMs: 5000 });
    const jobs = async (...words: string[]): Promise<Records> =>
      parseJson((await lab.run(["qstat", "-f", "-F", "json", ...words])).stdout, "Jobs")!;
    return {
      cluster: { type: "pbs", bin: join(lab.root, "bin") },
      queue: { nodes: 1, cores: 2, memory: "500M" },
      wrong: { keys: { partition: "nowhere" }, words: /Unknown queue/ },
      shortWalltime: 20,
      cancelJob: async (id) => {
        await lab.run(["qdel", id]);
      },
      killNodeOf: async (id) => {
        const [host] = hostsOf((await jobs(id)).get(id)!.get("exec_host")!);
        await lab.killNode(host!);
        return () => lab.startNode(host!);
      },
      livingJobs: async () => [...(await jobs()).keys()],
      stop: () => lab.stop(),
    };
  },
});
