import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { taskContract } from "./task-contract.ts";

describe("tasks on this machine", () => {
  let slipway: SlipwayHome;

  beforeAll(async () => {
    slipway = await createHome();
    await mkdir(slipway.home, { mode: 0o700 });
    const queues = { main: { fleet: { period: "1s" } } };
    await writeFile(
      join(slipway.home, "clusters.yaml"),
      JSON.stringify({ clusters: { local: { resources: { cpus: 2, mem: "2G" }, queues } } }),
    );
    expect((await slipway.run(["up"])).status).toBe(0);
  });
  afterAll(() => slipway.cleanup());

  /** A process id with the time of its start: its group is the job. */
  const cancelJob = async (nativeId: string): Promise<void> => {
    process.kill(-Number(nativeId.split(":")[0]), "SIGKILL");
  };
  for (const via of ["pilot", "job"] as const)
    taskContract(via, () => ({ slipway, cluster: "local", queue: "main", most: 2, cancelJob }), { together: true });
});
