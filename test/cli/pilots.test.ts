import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PilotView, RunView, StatusView, TaskView, WhyView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Pilots by hand, and their lives, with real agents on this machine. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
});
afterEach(() => slipway.cleanup());

const up = async (clusters: string): Promise<void> => {
  await writeFile(join(slipway.home, "clusters.yaml"), clusters);
  expect((await slipway.run(["up"])).status).toBe(0);
};

const pilots = (): Promise<PilotView[]> => slipway.json<PilotView[]>(["pilots", "list"]);

const pilotIs = (id: string, what: string, is: (pilot: PilotView) => boolean): Promise<PilotView> =>
  until(`pilot ${id} ${what}`, async () => (await pilots()).find((pilot) => pilot.id === id && is(pilot)));

const TWO_CPUS = "resources: { cpu: 2 }, grace: 1s";

describe("pilots by hand", () => {
  it("add starts some, drain lets one end when it is empty, cancel ends one now and its task runs again", async () => {
    await up(`clusters: { local: { ${TWO_CPUS}, queues: { q: { fleet: { max: 1, idle: 10m } } } } }`);
    const gate = createGate(slipway.cwd);
    const added = await slipway.json<PilotView[]>(["pilots", "add"]);
    expect(added).toMatchObject([{ id: "1", cluster: "local", queue: "q", ended: null }]);
    await pilotIs("1", "is active", ({ state }) => state === "PMGR_ACTIVE");
    const { run } = await slipway.json<{ run: number }>(["submit", "--retries", "0", "--", ...gate.command]);
    await gate.arrived(1);

    const drained = await slipway.run(["pilots", "drain", "1"]);
    expect(drained).toMatchObject({ status: 0, stdout: "pilot 1 takes no new tasks\n" });
    expect((await slipway.run(["pilots", "list"])).stdout).toContain("running draining");
    const more = await slipway.run(["pilots", "add", "--cluster", "local", "--queue", "q", "--count", "2"]);
    expect(more.stdout).toMatch(/^2 pilots requested from local\/q: \d+, \d+\n$/);

    expect((await slipway.run(["pilots", "cancel", "1", "--reason", "by a test"])).status).toBe(0);
    const ended = await pilotIs("1", "ended", ({ ended: at }) => at !== null);
    expect(ended).toMatchObject({ state: "CANCELED", reason: "by a test" });
    await gate.arrived(2);
    gate.open();
    await slipway.run(["wait", String(run)]);
    const task = await slipway.json<TaskView>(["show", `${run}.0`]);
    expect(task).toMatchObject({ state: "DONE", attempts: [{ lost: true, pilot: "1" }, { lost: false }] });
    expect(await slipway.json<RunView>(["show", String(run)])).toMatchObject({ retries: 0, losses: 0 });

    const status = await slipway.json<StatusView>(["status"]);
    expect(status.fleets).toMatchObject([{ cluster: "local", queue: "q", strategy: "auto", max: 1, waiting: 0 }]);
    expect(await slipway.json<PilotView>(["pilots", "drain", "1"])).toMatchObject({ state: "CANCELED" });
  });

  it("names what is wrong: no such pilot, queue or cluster, no number, no server", async () => {
    expect((await slipway.run(["pilots", "add"])).status).toBe(3);
    await up(`clusters: { local: { ${TWO_CPUS} } }`);
    const wrong: [string[], string][] = [
      [["drain", "7"], "there is no pilot 7"],
      [["cancel", "x"], "'x' is not a pilot"],
      [["add", "--queue", "defalt"], "cluster 'local' has no queue 'defalt'"],
      [["add", "--cluster", "locl"], "no cluster 'locl'"],
      [["add", "--count", "0"], "--count must be"],
    ];
    for (const [args, text] of wrong) {
      const { status, stderr } = await slipway.run(["pilots", ...args]);
      expect(status).toBe(2);
      expect(stderr).toContain(text);
    }
  });
});

describe("the end of a pilot", () => {
  it("tasks are told, signalled, and run again elsewhere: at no cost if they answer, as a loss if they do not", async () => {
    await up(`clusters: { local: { ${TWO_CPUS}, queues: { q: { walltime: 12s, signal: USR1, signal-before: 3s } } } }`);
    const answers = `[ -e saved ] && exit 0; trap 'echo "$SLIPWAY_PILOT_END $SLIPWAY_SIGNAL_SECONDS" > saved; exit 3' USR1; while :; do sleep 0.1; done`;
    const ignores = `[ -e seen ] && exit 0; touch seen; trap '' USR1 TERM; while :; do sleep 0.1; done`;
    const submit = (script: string): Promise<{ run: number }> =>
      slipway.json(["submit", "--retries", "0", "--", "sh", "-c", script.replaceAll("{", "{{").replaceAll("}", "}}")]);
    const [first, second] = [await submit(answers), await submit(ignores)];
    await slipway.run(["wait", String(first.run), String(second.run)]);

    expect(await slipway.json<TaskView>(["show", `${first.run}.0`])).toMatchObject({
      state: "DONE",
      attempts: [{ lost: true, exitCode: 3, reason: "it ended at its pilot's signal" }, { lost: false }],
    });
    expect(await slipway.json<RunView>(["show", String(first.run)])).toMatchObject({ retries: 0, losses: 0 });
    expect(await slipway.json<TaskView>(["show", `${second.run}.0`])).toMatchObject({
      state: "DONE",
      attempts: [{ lost: true, reason: "its pilot's walltime is over" }, { lost: false }],
    });
    expect(await slipway.json<RunView>(["show", String(second.run)])).toMatchObject({ retries: 0, losses: 1 });

    const [end, seconds] = (await readFile(join(slipway.cwd, "saved"), "utf8")).trim().split(" ").map(Number);
    expect(seconds).toBe(3);
    expect(Math.abs(end! - Date.now() / 1000)).toBeLessThan(600);
    const pilot = await pilotIs("1", "ended", ({ ended }) => ended !== null);
    expect(pilot.state).toBe("DONE");
    expect((await pilots()).length).toBeGreaterThan(1);
  });

  it("none: when its pilots are gone, tasks wait with a reason, or fail, as configured", async () => {
    await up(
      `clusters: { local: { ${TWO_CPUS}, queues: { waits: { fleet: { strategy: none } }, fails: { fleet: { strategy: none, when-gone: fail } } } } }`,
    );
    const waiting = await slipway.json<{ run: number }>(["submit", "--queue", "waits", "--", "true"]);
    const failing = await slipway.json<{ run: number }>(["submit", "--queue", "fails", "--", "true"]);
    expect((await slipway.run(["wait", String(failing.run)])).status).toBe(1);
    expect(await slipway.json<TaskView>(["show", `${failing.run}.0`])).toMatchObject({
      state: "FAILED",
      reason: "all pilots of local/fails have ended",
      attempts: [],
    });
    const why = await until("a reason", async () => {
      const answer = await slipway.json<WhyView>(["why", String(waiting.run)]);
      return answer.cause === "no-pilot" ? answer : undefined;
    });
    expect(why.detail).toContain("strategy is none");
    await slipway.run(["pilots", "add", "--queue", "waits"]);
    expect((await slipway.run(["wait", String(waiting.run)])).status).toBe(0);
  });
});
