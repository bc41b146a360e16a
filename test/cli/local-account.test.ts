import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PilotView, RunView, StatusView, WhyView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/** What this machine has is its own, however many queues, pilots and agents started by hand share it. */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    "clusters: { local: { resources: { cpus: 1, licence: 1 }, grace: 1s, queues: { a: {}, b: {} } } }\n",
  );
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const submit = async (...args: string[]): Promise<number> =>
  (await slipway.json<{ run: number }>(["submit", ...args])).run;
const stateOf = async (run: number): Promise<RunView["counts"]> =>
  (await slipway.json<RunView>(["show", String(run)])).counts;
const activeIn = (queue: string): Promise<PilotView> =>
  until(`a pilot of ${queue}`, async () =>
    (await slipway.json<StatusView>(["status"])).pilots.find(
      (pilot) => pilot.queue === queue && pilot.state === "PMGR_ACTIVE",
    ),
  );

describe("one machine", () => {
  it("row 001-36: two queues and an agent started by hand share its core and its licence, across a restart too", async () => {
    const gate = createGate(slipway.cwd, "holds");
    const licence = ["--resource", "licence=1"];
    const first = await submit("--queue", "a", ...licence, "--", ...gate.command);
    await gate.arrived(1);
    const other = createGate(slipway.cwd, "waits");
    const second = await submit("--queue", "b", ...licence, "--", ...other.command);
    // its queue has a pilot now, and that pilot has a core and a licence: but they are the same ones
    await activeIn("b");
    const hand = slipway.start(["agent", "--cpus", "1", "--resource", "licence=1", "--queue", "b"], {
      timeoutMs: 110_000,
    });
    await hand.saw(/agent [0-9a-f-]{36} on /, "stderr");

    const why = await until("the reason", async () => {
      const said = await slipway.json<WhyView>(["why", String(second)]);
      return said.detail.includes("licence") && said.cause === "busy" ? said : undefined;
    });
    expect(why.detail).toContain(`it waits for licence: 0 of 1 that this machine has are free (${first}.0 has 1)`);

    const { pid } = (await slipway.json<StatusView>(["status"])).server;
    process.kill(pid, "SIGKILL");
    await slipway.run(["up"]);
    // all its agents are back, so it could place the second one if it did not know of the first
    await until("the agents", async () => {
      const { pilots } = await slipway.json<StatusView>(["status"]);
      const agents = pilots.flatMap((pilot) => pilot.agents);
      return agents.length >= 2 && agents.every(({ state }) => state === "connected") ? true : undefined;
    });
    await until("the first task", async () => ((await stateOf(first))["AGENT_EXECUTING"] === 1 ? true : undefined));
    expect(await other.arrived(0)).toEqual([]);
    gate.open();
    expect(await other.arrived(1)).toHaveLength(1);
    other.open();
    expect((await slipway.run(["wait", String(first), String(second)])).status).toBe(0);
    hand.child.kill("SIGTERM");
    await hand.ended;
  });

  it("row 001-17: temporary space that nobody declared is not reserved: any amount may be asked for", async () => {
    const { counts } = await slipway.json<RunView>(["run", "--tmp", "900T", "--", "true"]);
    expect(counts).toEqual({ DONE: 1 });
  });
});
