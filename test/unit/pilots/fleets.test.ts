import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FLEET, type FleetConfig } from "../../../src/config/fleet-keys.ts";
import { Task } from "../../../src/core/states.ts";
import { peek } from "../../../src/core/table.ts";
import { CommandError } from "../../../src/managers/commands.ts";
import type { JobStatus } from "../../../src/managers/provider.ts";
import { createClusterKeeper } from "../../../src/pilots/cluster-keeper.ts";
import type { KeeperContext } from "../../../src/pilots/context.ts";
import type { Fleet } from "../../../src/pilots/fleet.ts";
import type { FleetNotes } from "../../../src/pilots/notes.ts";
import { restMs } from "../../../src/pilots/rest.ts";
import { createRoster } from "../../../src/pilots/roster.ts";
import type { Spools } from "../../../src/pilots/spools.ts";
import { until } from "../../until.ts";
import { type Setup, connectAgent, createManager, fleetOf, startKeepers } from "./fleet-setup.ts";

vi.setConfig({ testTimeout: 60_000 });
vi.stubEnv("TEST_PATIENCE_MS", "50000");

let home: string;
const open: Setup[] = [];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "slw-"));
  await mkdir(join(home, "journal"));
});
afterEach(async () => {
  for (const setup of open.splice(0)) await setup.close();
  await rm(home, { recursive: true, force: true });
});

const start = async (
  ...args: Parameters<typeof startKeepers> extends [string, ...infer R] ? R : never
): Promise<Setup> => {
  const setup = await startKeepers(home, ...args);
  open.push(setup);
  return setup;
};

const HOUR = 3_600_000;
const never = new Promise<never>(() => undefined);

const outcomeOf = (setup: Setup, run: number, row = 0): { state: number; reason: string } => {
  const found = setup.engine.state.runs.get(run)!;
  const page = peek(found.table, row);
  return { state: page?.state[row] ?? 0, reason: found.reasons[page?.reason[row] ?? 0] ?? "" };
};

describe("what the manager is asked", () => {
  it("once a period about all pilots of all queues, and one listing before the first submission", async () => {
    const manager = createManager();
    const order: string[] = [];
    const { submit, list } = manager;
    manager.submit = (job) => (order.push("submit"), submit(job));
    manager.list = (prefix) => (order.push(`list ${prefix}`), list(prefix));
    await start(["a", "b"].map((queue) => fleetOf(manager, { min: 3 }, { queue })));
    await until("there were polls", () => manager.polls.length >= 3);
    expect(order).toEqual(["list slipway-test-", ...Array.from({ length: 6 }, () => "submit")]);
    expect(manager.polls.at(-1)!.toSorted()).toEqual(["100", "101", "102", "103", "104", "105"]);
  });

  it("between two periods nothing, however often something may have ended", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { min: 2 })], { periodMs: HOUR });
    await until("both were submitted", () => manager.jobs.size === 2);
    for (let i = 0; i < 100; i += 1) {
      setup.pilots.look();
      setup.pilots.expectWork();
      await sleep(1);
    }
    expect([manager.lists, manager.polls.length, manager.jobs.size]).toEqual([1, 0, 2]);
  });

  it("work that comes later gets its pilots at once too, up to the most there may be", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { max: 3 })], { periodMs: HOUR });
    for (const [tasks, jobs] of [
      [1, 1],
      [8, 3],
      [40, 3],
    ] as const) {
      setup.work(tasks);
      setup.pilots.expectWork();
      await until(`there are ${jobs} jobs`, () => manager.jobs.size === jobs);
    }
    expect([manager.lists, manager.polls.length]).toEqual([1, 0]);
  });

  it("looks for new work start pilots and let none go: `wait-count` counts periods", async () => {
    const manager = createManager();
    const policy = { strategy: "adaptive", init: 3, max: 9, waitCount: 2 } as const;
    const setup = await start([fleetOf(manager, policy)], { periodMs: HOUR });
    await until("three were submitted", () => manager.jobs.size === 3);
    // two are too many
    for (let i = 0; i < 10; i += 1) {
      setup.work(1);
      setup.pilots.expectWork();
      await sleep(30);
    }
    expect(manager.cancelled).toEqual([]);
    setup.work(10_000);
    setup.pilots.expectWork();
    await until("there are as many as there may be", () => manager.jobs.size === 9);
    expect([manager.lists, manager.polls.length, manager.cancelled]).toEqual([1, 0, []]);
  });

  it("one that hangs holds up no other cluster", async () => {
    const hanging = createManager({ poll: () => never });
    const other = createManager();
    const setup = await start([
      fleetOf(hanging, { min: 1 }),
      fleetOf(other, { min: 1 }, { cluster: "second", queue: "q" }),
    ]);
    await until("both have a job", () => hanging.jobs.size === 1 && other.jobs.size === 1);
    other.statuses.set("100", { state: "ended", raw: "F", outcome: "failed", exitCode: 1 });
    await until("the other's failure is known", () =>
      [...setup.engine.state.pilots.values()].some(({ cluster, state }) => cluster === "second" && state === "FAILED"),
    );
  });

  it("while it does not answer nothing is submitted, and that is told", async () => {
    let down = true;
    const manager = createManager();
    const { list } = manager;
    manager.list = (prefix) => (down ? Promise.reject(new Error("squeue: cannot reach the controller")) : list(prefix));
    const setup = await start([fleetOf(manager, { min: 1 })]);
    await until(
      "the problem is told",
      () => setup.pilots.problem("hpc", "cpu") === "squeue: cannot reach the controller",
    );
    expect(manager.jobs.size).toBe(0);
    down = false;
    await until("it goes on", () => manager.jobs.size === 1);
    expect(setup.pilots.problem("hpc", "cpu")).toBeNull();
  });
});

describe("a cluster at rest", () => {
  it("is looked at less often than one with work or pilots; what its user wrote for longer stays", async () => {
    const manager = createManager();
    const { engine, agents, work } = await start([]);
    const keeperOf = (period: number) =>
      createClusterKeeper("hpc", [fleetOf(manager, { period })], {
        prefix: "slipway-test",
        defaultCluster: "hpc",
        engine,
        agents,
        roster: createRoster(home, engine, agents),
        spools: { importAll: async () => undefined, prune: async () => undefined } as Spools,
        log: () => undefined,
        onWaiting: () => undefined,
        onHeard: () => undefined,
      });
    const keeper = keeperOf(1);
    expect(keeper.periodMs).toBe(1000);
    await keeper.look();
    expect(keeper.periodMs).toBe(10_000);
    const patient = keeperOf(60);
    await patient.look();
    expect(patient.periodMs).toBe(60_000);

    const run = work(1);
    expect(keeper.periodMs).toBe(1000);
    await keeper.look();
    await until("there is a job", () => manager.jobs.size === 1);
    engine.commit({ type: "run.canceled", at: engine.clock(), run, reason: "test" });
    await until("the run is over", () => engine.state.runs.get(run)!.finished > 0);
    // its pilot is still there
    expect(keeper.periodMs).toBe(1000);
    await keeper.cancel(engine.state.pilots.get(1)!, "test");
    await until("its pilot has gone", async () => {
      await keeper.look();
      return keeper.periodMs === 10_000;
    });
  });
});

describe("a pilot on this machine that waits for work", () => {
  const WAITING: Partial<Fleet> = { prompt: true };
  const ease = async (policy: Partial<FleetConfig>, change: Partial<Fleet>): Promise<number[]> => {
    const manager = createManager();
    const fleet = fleetOf(manager, { period: 1, min: 1, max: 1, ...policy }, change);
    const setup = await start([fleet]);
    const { engine, agents } = setup;
    await until("there is a job", () => manager.jobs.size === 1);
    const context = { engine, agents, roster: createRoster(home, engine, agents) } as KeeperContext;
    const rest = () => restMs([fleet], context, () => ({ first: false }) as FleetNotes, undefined);
    const seen = [rest()];
    const agent = connectAgent(setup, 1);
    await until("it is active", () => setup.pilot(1)?.state === "PMGR_ACTIVE");
    seen.push(rest());
    const run = setup.work(1);
    seen.push(rest());
    engine.commit({ type: "run.canceled", at: engine.clock(), run, reason: "test" });
    await until("the run is over", () => engine.state.runs.get(run)!.finished > 0);
    seen.push(rest());
    agent.cut();
    await until("it is suspect", () => agents.link(1)?.channel === undefined);
    seen.push(rest());
    return seen;
  };

  it("is looked at less often while its agent is connected and nothing is to run", async () => {
    const seen = await ease({}, WAITING);
    expect(seen).toEqual([0, 5000, 0, 5000, 0]);
  });

  it("is looked at as ever if it is to end soon", async () => {
    const soon = await ease({ idle: 20 }, WAITING);
    expect(soon).toEqual([0, 0, 0, 0, 0]);
  });

  it("is looked at as ever if its manager is elsewhere", async () => {
    const elsewhere = await ease({}, {});
    expect(elsewhere).toEqual([0, 0, 0, 0, 0]);
  });

  it("is looked at as ever while it drains", async () => {
    const manager = createManager();
    const fleet = fleetOf(manager, { min: 1, max: 1 }, WAITING);
    const setup = await start([fleet]);
    const { engine, agents } = setup;
    await until("there is a job", () => manager.jobs.size === 1);
    connectAgent(setup, 1);
    await until("it is active", () => setup.pilot(1)?.state === "PMGR_ACTIVE");
    agents.drain(1, false, "test");
    const context = { engine, agents, roster: createRoster(home, engine, agents) } as KeeperContext;
    expect(restMs([fleet], context, () => ({ first: false }) as FleetNotes, undefined)).toBe(0);
  });
});

describe("pilots that do not start", () => {
  it("a refusal is the pilot's reason, and followed by a pause, not by another submission", async () => {
    let asked = 0;
    const manager = createManager({
      submit: async () => {
        asked += 1;
        throw new Error("sbatch: error: invalid partition specified: qcpx");
      },
    });
    const setup = await start([fleetOf(manager, { max: 1 })]);
    setup.work(5);
    await until("the pause is told", () =>
      setup.pilots.problem("hpc", "cpu")?.includes("1 pilot in a row did not start"),
    );
    expect(setup.pilot(1)).toMatchObject({ state: "FAILED", reason: expect.stringContaining("invalid partition") });
    expect(setup.pilots.failure("hpc", "cpu")).toContain("pilot 1: sbatch: error: invalid partition");
    expect(asked).toBe(1);
  });

  it("one that ended before its agent connected shows exit code, head and tail of its output", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { min: 1, max: 1 })]);
    const job = await until("there is a job", () => manager.jobs.get("100"));
    await writeFile(join(job.directory, "job.out"), `first line\n${"x".repeat(9000)}\nnode: command not found\n`);
    manager.statuses.set("100", {
      state: "ended",
      raw: "FAILED",
      reason: "NonZeroExitCode",
      outcome: "failed",
      exitCode: 127,
    });
    const pilot = await until("it failed", () => setup.pilot(1)?.state === "FAILED" && setup.pilot(1));
    expect(pilot.reason).toBe(
      "its job failed: FAILED (NonZeroExitCode), exit code 127; it said: node: command not found",
    );
    expect(pilot.output).toMatch(/^job\.out:\nfirst line\n/);
    expect(pilot.output).toMatch(/node: command not found$/);
    expect(pilot.output!.length).toBeLessThan(4000);
  });

  it("one that the manager could not start and keeps is cancelled, with the reason it was kept for", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { max: 1 })]);
    setup.work(1);
    await until("there is a job", () => manager.jobs.size === 1);
    manager.statuses.set("100", { state: "held", raw: "Eqw", reason: "no such directory", stuck: true });
    await until("it failed", () => setup.pilot(1)?.state === "FAILED");
    expect(setup.pilot(1)?.reason).toBe("its job could not be started: Eqw (no such directory)");
    expect(setup.pilots.failure("hpc", "cpu")).toContain("no such directory");
    expect(manager.cancelled).toEqual(["100"]);
  });

  it("simple: the tasks that only this queue could run fail with each pilot's reason; others go on waiting", async () => {
    const bad = createManager({ submit: async () => Promise.reject(new Error("no such account")) });
    const setup = await start([fleetOf(bad, { errorHandler: "simple" })]);
    const run = setup.work(3);
    const elsewhere = setup.work(1, { cluster: "other" });
    await until("they failed", () => outcomeOf(setup, run).state === Task.FAILED);
    expect(outcomeOf(setup, run, 2).reason).toMatch(/^no pilot of hpc\/cpu starts: pilot 1: no such account/);
    expect(setup.engine.state.runs.get(run)!.finished).toBeGreaterThan(0);
    expect(outcomeOf(setup, elsewhere).state).not.toBe(Task.FAILED);
    expect(setup.engine.scheduler.waiting()).toBe(1);
    // later tasks get a new try
    const later = setup.work(1);
    await until("these failed too", () => outcomeOf(setup, later).state === Task.FAILED);
    expect(setup.engine.state.pilots.size).toBeGreaterThan(1);
  });

  it("a queue that fails gives its tasks to one that does not", async () => {
    const bad = createManager();
    const { submit } = bad;
    bad.submit = (job) => (job.name.endsWith("-1") ? Promise.reject(new Error("no such account")) : submit(job));
    const setup = await start([
      fleetOf(bad, { errorHandler: "simple", max: 1 }, { queue: "first" }),
      fleetOf(bad, { max: 1 }, { queue: "second" }),
    ]);
    const run = setup.work(3);
    await until("the second queue has a pilot", () =>
      [...setup.engine.state.pilots.values()].some(({ queue, nativeId }) => queue === "second" && nativeId !== ""),
    );
    expect(outcomeOf(setup, run).state).not.toBe(Task.FAILED);
  });

  it("a submission whose answer was lost is looked up by its name before anything else is submitted", async () => {
    const manager = createManager();
    const { submit } = manager;
    let lost = true;
    manager.submit = async (job) => {
      const answer = await submit(job);
      if (!lost) return answer;
      lost = false;
      throw new CommandError("sbatch did not answer within 60 s", ["sbatch"], true);
    };
    const setup = await start([fleetOf(manager, { min: 1, max: 1 })]);
    await until("it was found again", () => setup.pilot(1)?.nativeId === "100");
    expect([manager.jobs.size, setup.engine.state.pilots.size]).toEqual([1, 1]);
  });
});

describe("what the manager does to a pilot", () => {
  const ends: [string, JobStatus, string, RegExp][] = [
    ["its walltime", { state: "ended", raw: "TIMEOUT", outcome: "timeout" }, "DONE", /walltime is over: TIMEOUT/],
    ["a lost node", { state: "ended", raw: "NODE_FAIL", outcome: "lost" }, "FAILED", /node was lost: NODE_FAIL/],
    ["preemption", { state: "ended", raw: "PREEMPTED", outcome: "preempted" }, "FAILED", /was preempted/],
    ["memory", { state: "ended", raw: "OUT_OF_MEMORY", outcome: "out-of-memory" }, "FAILED", /out of memory/],
    [
      "an administrator",
      { state: "ended", raw: "CANCELLED by 0", outcome: "cancelled" },
      "CANCELED",
      /cancelled in the manager: CANCELLED by 0/,
    ],
    [
      "failure",
      { state: "ended", raw: "F", outcome: "failed", exitCode: 1, signal: 9 },
      "FAILED",
      /exit code 1, SIGKILL/,
    ],
  ];
  for (const [what, status, state, reason] of ends)
    it(`ended by ${what}: ${state}, and its tasks run again as losses`, async () => {
      const manager = createManager();
      const setup = await start([fleetOf(manager, { max: 1 })]);
      const run = setup.work(1);
      await until("there is a job", () => manager.jobs.size === 1);
      manager.statuses.set("100", { state: "active", raw: "R" });
      const agent = connectAgent(setup, 1);
      await until("it has the task", () => agent.heard.some(({ t }) => t === "assign"));
      agent.cut();
      await until("it is suspect", () => setup.agents.link(1)?.channel === undefined);
      expect(setup.engine.state.runs.get(run)!.losses).toBe(0);
      manager.statuses.set("100", status);
      const pilot = await until("it ended", () => setup.pilot(1)?.state === state && setup.pilot(1));
      expect(pilot.reason).toMatch(reason);
      expect(setup.engine.state.runs.get(run)).toMatchObject({ losses: 1, finished: 0 });
    });

  it("rule 5: a manager that has forgotten a job has not ended it while its agent is there", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { min: 1, max: 1 })]);
    await until("there is a job", () => manager.jobs.size === 1);
    const agent = connectAgent(setup, 1);
    await until("it is active", () => setup.pilot(1)?.state === "PMGR_ACTIVE");
    manager.statuses.set("100", { state: "ended", raw: "", outcome: "unknown" });
    const before = manager.polls.length;
    await until("it was asked again", () => manager.polls.length > before + 2);
    expect(setup.pilot(1)?.state).toBe("PMGR_ACTIVE");
    agent.cut();
    await until("without an agent it has", () => setup.pilot(1)?.state === "FAILED");
  });

  it("requeued: its agents are lost, and the same pilot goes on when they connect anew", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { max: 1 })]);
    const run = setup.work(1);
    await until("there is a job", () => manager.jobs.size === 1);
    manager.statuses.set("100", { state: "active", raw: "R" });
    const agent = connectAgent(setup, 1);
    await until("it has the task", () => agent.heard.some(({ t }) => t === "assign"));
    agent.cut();
    manager.statuses.set("100", { state: "queued", raw: "PD", reason: "BeginTime" });
    await until("its agent is lost", () => setup.engine.state.agents.get(1)!.ended > 0);
    expect(setup.pilot(1)?.state).toBe("PMGR_ACTIVE");
    expect(setup.pilots.waiting(1)?.text).toEqual(expect.stringContaining("queued: PD (BeginTime)"));
    expect(setup.engine.state.runs.get(run)!.losses).toBe(1);
    manager.statuses.set("100", { state: "active", raw: "R" });
    const again = connectAgent(setup, 1);
    await until("it has the task again", () => again.heard.some(({ t }) => t === "assign"));
    expect([setup.engine.state.pilots.size, manager.jobs.size]).toEqual([1, 1]);
  });

  it("requeued as another job: the pilot goes on under that id", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { min: 1, max: 1 })]);
    await until("there is a job", () => manager.jobs.size === 1);
    manager.statuses.set("777", { state: "queued", raw: "Waiting" });
    manager.statuses.set("100", { state: "ended", raw: "Error", outcome: "lost", successor: "777" });
    await until("it is polled under the other id", () => manager.polls.at(-1)?.[0] === "777");
    expect(setup.pilot(1)).toMatchObject({ nativeId: "777", ended: 0 });
  });

  it("queued, held, suspended: shown with the manager's own words", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { min: 1, max: 1 })]);
    await until("it waits", () =>
      setup.pilots.waiting(1)?.text.startsWith("queued: PD (Priority), jobs with a higher priority"),
    );
    manager.statuses.set("100", { state: "held", raw: "PD", reason: "JobHeldUser" });
    await until("it is held", () => setup.pilots.waiting(1)?.text.startsWith("held: PD (JobHeldUser)"));
    manager.statuses.set("100", { state: "unknown", raw: "XYZ" });
    await until("nobody knows", () => setup.pilots.waiting(1)?.text === "unknown: XYZ");
    manager.statuses.set("100", { state: "active", raw: "R" });
    await until("it runs", () => setup.pilots.waiting(1) === null);
    expect(setup.pilot(1)?.ended).toBe(0);
  });
});

describe("scaling in", () => {
  it("pending pilots are cancelled when their work is gone", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { idle: 0 })]);
    const run = setup.work(12);
    await until("three were asked for", () => manager.jobs.size === 3);
    setup.engine.commit({ type: "run.canceled", at: setup.engine.clock(), run, reason: "test" });
    await until("all are cancelled", () =>
      [...setup.engine.state.pilots.values()].every(({ state }) => state === "CANCELED"),
    );
    expect(manager.cancelled.toSorted()).toEqual(["100", "101", "102"]);
  });

  it("an idle pilot is drained, not cancelled, and ends with its job", async () => {
    // its job runs from the beginning and ends with its agent: a job that waits, or continues without an agent, is
    // cancelled
    let hasLeft = (): boolean => false;
    const over: JobStatus = { state: "ended", raw: "CD", outcome: "done", exitCode: 0 };
    const manager = createManager({
      poll: async (ids) => new Map(ids.map((id) => [id, hasLeft() ? over : { state: "active", raw: "R" }])),
    });
    const policy = { ...FLEET, idle: 0, min: 1 };
    const setup = await start([{ ...fleetOf(manager, {}), policy }]);
    hasLeft = () => (setup.engine.state.agents.get(1)?.ended ?? 0) > 0;
    await until("there is a job", () => manager.jobs.size === 1);
    const agent = connectAgent(setup, 1);
    await until("its agent is there", () => agent.heard.some(({ t }) => t === "welcome"));
    policy.min = 0;
    await until("it is told to drain", () => agent.heard.some(({ t }) => t === "drain"));
    expect(setup.pilot(1)).toMatchObject({ draining: true, ended: 0 });
    agent.send({ t: "bye", reason: "drained" });
    await until("it has ended", () => (setup.pilot(1)?.ended ?? 0) > 0);
    expect(setup.pilot(1)?.state).toBe("DONE");
    expect(manager.cancelled).toEqual([]);
  });

  it("a pilot that lost its agents while its job goes on counts for nothing: another is started", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { max: 1 }, { leaseMs: 100 })]);
    const run = setup.work(1);
    await until("there is a job", () => manager.jobs.size === 1);
    manager.statuses.set("100", { state: "active", raw: "R" });
    const agent = connectAgent(setup, 1);
    await until("it has the task", () => agent.heard.some(({ t }) => t === "assign"));
    agent.cut();
    await until("there is another", () => manager.jobs.size === 2);
    expect(setup.pilot(1)?.ended).toBe(0);
    expect(setup.engine.state.runs.get(run)!.losses).toBe(1);
  });

  it("a pilot without the time that a task requests is joined by another", async () => {
    const manager = createManager();
    const setup = await start([fleetOf(manager, { init: 1 }, { walltime: 7200 })]);
    await until("there is a job", () => manager.jobs.size === 1);
    manager.statuses.set("100", { state: "active", raw: "R" });
    const agent = connectAgent(setup, 1, { endsInMs: 600_000 });
    await until("it is active", () => setup.pilot(1)?.state === "PMGR_ACTIVE");
    setup.work(1, { timeRequest: 300 });
    await until("it gets the short one", () => agent.heard.filter(({ t }) => t === "assign").length === 1);
    expect(manager.jobs.size).toBe(1);
    setup.work(1, { timeRequest: 3600 });
    await until("there is another for the long one", () => manager.jobs.size === 2);
    expect(agent.heard.filter(({ t }) => t === "assign")).toHaveLength(1);
  });
});

describe("after a restart", () => {
  it("strays of this home are cancelled before anything is submitted; other jobs are left alone", async () => {
    const manager = createManager();
    const foreign = [
      { name: "slipway-test-9", nativeId: "9" },
      { name: "slipway-test-launch-9", nativeId: "10" },
      { name: "slipway-other-1", nativeId: "11" },
      { name: "slipway-test-x", nativeId: "12" },
    ];
    manager.list = async () => foreign;
    await start([fleetOf(manager, { min: 1, max: 1 })]);
    await until("there is a job", () => manager.jobs.size === 1);
    expect(manager.cancelled).toEqual(["9"]);
  });

  it("pilots are found again by their ids, and count", async () => {
    const manager = createManager();
    const before = await start([fleetOf(manager, { min: 2, max: 2 })]);
    await until(
      "there are two",
      () =>
        [...before.engine.state.pilots.values()].every(({ nativeId }) => nativeId !== "") && manager.jobs.size === 2,
    );
    await before.close();
    open.splice(0);
    const after = await start([fleetOf(manager, { min: 2, max: 2, init: 2 })], { epoch: 2 });
    const polls = manager.polls.length;
    await until("they are polled", () => manager.polls.length > polls);
    expect(manager.polls.at(-1)!.toSorted()).toEqual(["100", "101"]);
    expect([manager.jobs.size, after.engine.state.pilots.size, manager.cancelled]).toEqual([2, 2, []]);
  });
});

describe("by hand", () => {
  it("add is not bound by max, cancel of one that was not answered yet is carried out when it is", async () => {
    let answer: (() => void) | undefined;
    const manager = createManager();
    const { submit } = manager;
    manager.submit = async (job) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return submit(job);
    };
    const setup = await start([fleetOf(manager, { max: 0 })]);
    await until("it was listed", () => manager.lists === 1);
    expect(setup.pilots.add("hpc", "cpu", 1)).toEqual([1]);
    expect(setup.pilots.add("hpc", "nope", 1)).toBeUndefined();
    await until("it is being submitted", () => answer !== undefined);
    await setup.pilots.cancel(setup.pilot(1)!, "by hand");
    answer!();
    await until("it was cancelled", () => setup.pilot(1)?.state === "CANCELED");
    expect(manager.cancelled).toContain("100");
  });
});
