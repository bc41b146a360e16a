import { mkdir, readFile, readlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { RunView } from "../../src/api/schemas.ts";
import { createGate } from "./gate.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";
import { until } from "../until.ts";

/** The cluster `local`: this machine, for one home. */

const homes: SlipwayHome[] = [];
const start = async (clusters?: string): Promise<SlipwayHome> => {
  const slipway = await createHome();
  homes.push(slipway);
  if (clusters !== undefined) {
    await mkdir(slipway.home);
    await writeFile(join(slipway.home, "clusters.yaml"), clusters);
  }
  return slipway;
};

afterAll(async () => {
  for (const slipway of homes) await slipway.cleanup();
});

describe("the local cluster", () => {
  it("row 001-25: tasks run on the host where the command is typed, in its directory, by processes of this machine", async () => {
    const slipway = await start();
    const script =
      'echo "$(hostname)|$(pwd -P)|$(cat /proc/sys/kernel/random/boot_id)|$(readlink /proc/self/ns/pid)|$$"';
    const { status } = await slipway.run(["run", "--", "sh", "-c", `${script} > said; exec sleep 0.1`]);
    expect(status).toBe(0);
    const [host, directory, boot, space, pid] = (await readFile(join(slipway.cwd, "said"), "utf8")).trim().split("|");
    expect([host, directory, boot, space]).toEqual([
      hostname(),
      slipway.cwd,
      (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim(),
      await readlink("/proc/self/ns/pid"),
    ]);
    expect(Number(pid)).toBeGreaterThan(1);
  });

  it("row 001-26: two homes do not know of each other: each gives away all that its file says this machine has", async () => {
    const clusters = "clusters: { local: { resources: { cpus: 1, licence: 1 }, grace: 1s } }\n";
    const pair = await Promise.all([start(clusters), start(clusters)]);
    const runs = await Promise.all(
      pair.map(async (slipway) => {
        await slipway.run(["up"]);
        const gate = createGate(slipway.cwd);
        const words = ["submit", "--array", "1-2", "--resource", "licence=1", "--", ...gate.command];
        return { slipway, gate, run: (await slipway.json<{ run: number }>(words)).run };
      }),
    );
    // one of each home, at the same time: nobody told the other that the licence is taken
    for (const { gate } of runs) await gate.arrived(1);
    for (const { slipway, run } of runs) {
      // the server hears of it a moment after it began
      const counts = await until("one to be running", async () => {
        const view = await slipway.json<RunView>(["show", String(run)]);
        return (view.counts["AGENT_EXECUTING"] ?? 0) > 0 && view.counts;
      });
      expect(counts["AGENT_EXECUTING"]).toBe(1);
      expect(await slipway.json<RunView[]>(["list"])).toHaveLength(1);
    }
    for (const { gate } of runs) gate.open();
    for (const { slipway, run } of runs) expect((await slipway.run(["wait", String(run)])).status).toBe(0);
  });
});
