import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LaunchView } from "../../src/api/launch-schemas.ts";
import type { PilotView, RunView, TaskView } from "../../src/api/schemas.ts";
import { connect } from "../../src/client/index.ts";
import type { DeepVerdict } from "../../src/archive/verify.ts";
import { until } from "../until.ts";
import { type Gate, createGate } from "./gate.ts";
import { ROOT, type SlipwayHome, createHome } from "./slipway-process.ts";

/** What happened stays as it was, whatever compactions, restarts, other settings and other versions come after it. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
});

afterEach(() => slipway.cleanup());

const ok = async (...args: string[]): Promise<void> => {
  const { status, stderr, stdout } = await slipway.run(args);
  expect(`${status} ${stderr}${stdout}`).toMatch(/^0 /);
};

const verifyDeep = async (): Promise<DeepVerdict> =>
  (await slipway.json<{ deep: DeepVerdict }>(["journal", "verify", "--deep"])).deep;

const settings = (text: string): Promise<void> => writeFile(join(slipway.home, "clusters.yaml"), text);

describe("a home that commit 06c024e wrote", () => {
  const FIXTURE = join(ROOT, "test", "fixtures", "home-06c024e");

  interface Expected {
    readonly runs: readonly RunView[];
    readonly tasks: readonly TaskView[];
    readonly launches: readonly LaunchView[];
  }

  /** Everything that the server says now; what newer versions say in addition is not compared. */
  const compareWith = async ({ runs, tasks, launches }: Expected): Promise<void> => {
    const client = connect({ home: slipway.home });
    try {
      for (const expected of runs) {
        const run = await client.run(expected.id);
        expect(run).toMatchObject({ ...expected, eta: run.eta });
      }
      for (const expected of tasks) {
        const [run, index] = expected.id.split(".").map(Number);
        const task = await client.task(run!, index!);
        // agents reported where their output is with the path that the home had then
        expect(task).toMatchObject({ ...expected, lastStderr: task.lastStderr });
      }
    } finally {
      client.close();
    }
    // only the server under which a launch began counts its output
    const known = launches.map(({ output: _output, ...launch }) => launch);
    expect(await slipway.json(["jobs", "list"])).toMatchObject(known);
  };

  it("opens, says the same of all runs, tasks and launches, and goes on doing so under another limit", async () => {
    execFileSync("tar", ["xzf", join(FIXTURE, "home.tar.gz"), "-C", slipway.home]);
    const expected = JSON.parse(await readFile(join(FIXTURE, "expected.json"), "utf8")) as Expected;
    await ok("up");
    await compareWith(expected);
    expect(await verifyDeep()).toMatchObject({ ok: true, comparedWith: "none", undecided: 0, runs: 12 });
    await ok("down");
    // an older Slipway refuses it from now on
    const newest = (await slipway.json<{ segments: { name: string }[] }>(["journal", "info"])).segments.at(-1)!;
    expect((await readFile(join(slipway.home, "journal", newest.name))).readUInt16LE(8)).toBe(6);
    const clusters = await readFile(join(slipway.home, "clusters.yaml"), "utf8");
    await settings(clusters.replace('"losses":50', '"losses":1'));
    await ok("up");
    await compareWith(expected);
    await ok("journal", "compact");
    await ok("down");
    await ok("up");
    await compareWith(expected);
    // what waited continues: its end reaches the run behind it, through format 1, a restart and a snapshot
    await ok("cancel", "8");
    expect((await slipway.json<RunView>(["show", "9"])).state).toBe("CANCELED");
    expect((await slipway.json<TaskView>(["show", "9.0"])).reason).toBe("run 8 was cancelled");
    expect((await verifyDeep()).ok).toBe(true);
  });
});

describe("compaction and restarts", () => {
  const submit = async (...args: string[]): Promise<number> =>
    (await slipway.json<{ run: number }>(["submit", ...args])).run;

  const stateOf = async (run: number): Promise<string> => (await slipway.json<RunView>(["show", String(run)])).state;

  const losing = async (gate: Gate, times: number): Promise<void> => {
    for (let n = 1; n <= times; n += 1) {
      await gate.arrived(n);
      const [pilot] = await until("a pilot", async () => {
        const living = (await slipway.json<PilotView[]>(["pilots", "list"])).filter(({ ended }) => ended === null);
        return living.length > 0 ? living : undefined;
      });
      process.kill(Number(pilot!.nativeId!.split(":")[0]), "SIGKILL");
    }
    await gate.arrived(times + 1);
  };

  it("rule 2: a run that waited for another one while the journal was compacted stays done", async () => {
    await settings("keep-history: true\n");
    await ok("up");
    const gate = createGate(slipway.cwd);
    const a = await submit("--", ...gate.command);
    const b = await submit("--after", String(a), "--", "true");
    await gate.arrived(1);
    await ok("journal", "compact");
    gate.open();
    await ok("wait", String(a), String(b));
    await ok("down");
    expect(await verifyDeep()).toMatchObject({ ok: true, comparedWith: "all" });
    await ok("up");
    expect([await stateOf(a), await stateOf(b)]).toEqual(["DONE", "DONE"]);
  });

  it("rule 2: neither compaction nor another limit changes what became of a task that was lost", async () => {
    await settings("limits: { losses: 2 }\nkeep-history: true\n");
    await ok("up");
    const gate = createGate(slipway.cwd);
    const run = await submit("--", ...gate.command);
    await losing(gate, 2);
    gate.open();
    await ok("wait", String(run));
    await settings("limits: { losses: 0 }\nkeep-history: true\n");
    await ok("down");
    await ok("journal", "compact");
    await ok("up");
    expect(await slipway.json<RunView>(["show", String(run)])).toMatchObject({ state: "DONE", losses: 2 });
    expect(await verifyDeep()).toMatchObject({ ok: true, comparedWith: "all" });
    const second = createGate(slipway.cwd, "second");
    const strict = await submit("--", ...second.command);
    await second.arrived(1);
    const pilots = await slipway.json<PilotView[]>(["pilots", "list"]);
    process.kill(Number(pilots.find(({ ended }) => ended === null)!.nativeId!.split(":")[0]), "SIGKILL");
    expect((await slipway.run(["wait", String(strict)])).status).toBe(1);
    await settings("limits: { losses: 50 }\nkeep-history: true\n");
    await ok("journal", "compact");
    await ok("down");
    await ok("up");
    expect(await stateOf(strict)).toBe("FAILED");
    expect(await verifyDeep()).toMatchObject({ ok: true, comparedWith: "all" });
    second.open();
  });
});
