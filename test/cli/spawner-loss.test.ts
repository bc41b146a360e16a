import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/** A task that ends the process that started it, as its user sees it. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});
afterEach(() => slipway.cleanup());

describe.each(["native", "node"])("a task that kills its %s spawner", (spawner) => {
  it("is given up after as many losses as one that kills its agent; its neighbours are not", async () => {
    await mkdir(slipway.home);
    await writeFile(
      join(slipway.home, "clusters.yaml"),
      "limits: { losses: 2 }\nclusters: { local: { resources: { cpu: 4 } } }\n",
    );
    await slipway.run(["up"], { env: { SLIPWAY_SPAWNER: spawner } });
    const script = "[ {item} -ne 2 ] || kill -9 $PPID; sleep 0.5";
    const run = await slipway.json<RunView>(["run", "--array", "0-3", "--", "sh", "-c", script], { statuses: [1] });
    expect(run.counts).toEqual({ DONE: 3, FAILED: 1 });
    expect(run.losses).toBeGreaterThanOrEqual(3);
    const bad = await slipway.json<TaskView>(["show", `${run.id}.2`]);
    expect(bad.reason).toMatch(/^lost 3 times, the last time: its spawner ended: .*killed by SIGKILL/);
    expect(bad.attempts.map(({ lost }) => lost)).toEqual([true, true, false]);
    // a task that went down with it once did not do so again
    for (const item of [0, 1, 3]) {
      const { attempts } = await slipway.json<TaskView>(["show", `${run.id}.${item}`]);
      expect(attempts.length).toBeLessThanOrEqual(2);
    }
  });
});
