import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { preparePilot } from "../../../src/pilots/pilot-job.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-pilot-job-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const scriptOf = async (keys: object): Promise<string> => {
  const layer = readClustersFile(JSON.stringify({ clusters: { hpc: keys } }), "clusters.yaml");
  const cluster = combineClusters([layer]).clusters.get("hpc")!;
  const [queue] = cluster.queues.values();
  const job = await preparePilot(
    { home: root, cluster, queue: queue!, batch: cluster.manager.batch!, bundle: async () => "b" },
    { id: 1, jobName: "slipway-1", directory: root, lifetime: undefined },
  );
  return await readFile(job.script!, "utf8");
};

describe("the script of a pilot", () => {
  it("calls its manager's programs where bin says they are", async () => {
    const many = { nodes: 2, bin: "/opt/m/bin" };
    expect(await scriptOf({ type: "slurm", ...many })).toMatch(/^slipway_start \/opt\/m\/bin\/srun /m);
    expect(await scriptOf({ type: "slurm", ...many, launcher: "ssh" })).toContain("/opt/m/bin/scontrol show hostnames");
    expect(await scriptOf({ type: "pbs", ...many })).toMatch(/slipway_start \/opt\/m\/bin\/pbs_tmrsh /);
    expect(await scriptOf({ type: "slurm", nodes: 2 })).toMatch(/^slipway_start srun /m);
    const own = { name: "srun", program: "/site/srun" };
    expect(await scriptOf({ type: "slurm", ...many, launcher: own })).toMatch(/^slipway_start \/site\/srun /m);
  });

  it("tells each agent the licences of the whole cluster beside what its node has", async () => {
    await scriptOf({ type: "slurm", cores: 4, licences: { matlab: 5 }, resources: { disk: 1 } });
    const settings = JSON.parse(await readFile(join(root, "settings.json"), "utf8")) as { declared: unknown };
    expect(settings.declared).toEqual({ cpus: 40_000, matlab: 50_000, disk: 10_000 });
  });
});
