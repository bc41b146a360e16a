import { describe, expect, it, vi } from "vitest";
import { Ending } from "../../../src/core/events.ts";
import { PeakBy, peakPages } from "../../../src/core/peak.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Run, groupOf, shapeOfRow } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { createState } from "../../../src/core/state.ts";
import { isFinalTask } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { openJournal } from "../../../src/journal/index.ts";
import { learnedMemory } from "../../../src/learned/auto.ts";
import { createExpected } from "../../../src/learned/expected.ts";
import { createLearned } from "../../../src/learned/learned.ts";
import { createFirstTasks, firstOf } from "../../../src/learned/first-tasks.ts";
import { roomFor } from "../../../src/learned/request.ts";
import { holdBack } from "../../../src/scheduler/held-back.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createAutoRequests } from "../../../src/server/auto-requests.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createEngine } from "../../../src/server/engine.ts";
import { group, spec } from "../core/model.ts";
import { fakeDisk } from "../journal/disk.ts";

const GIB = 2 ** 30;
const NODE = { cpus: 16 * FRACTION, mem: 32 * GIB };
const OFFER = { id: 1, resources: NODE, cluster: "local", queue: "q", pilot: 1, endsAt: Infinity };
const AUTO = { resources: { cpus: FRACTION, mem: 2 * GIB }, auto: { mem: true, timeRequest: true }, memRetry: 2 };

/** A server with one node, without sockets and processes: tasks need what `peakOf` says, and are killed below. */
const start = async (learned = createLearned(), patienceMs = 3_600_000, withNode = true) => {
  const journal = await openJournal({ dir: "/j", epoch: 1, io: fakeDisk().io }, () => undefined);
  const expected = createExpected(learned, { defaultCluster: "local", unknownMs: () => 1000 });
  const first = createFirstTasks(expected);
  const scheduler = holdBack(createScheduler(), first.mayGo);
  const nodes = { most: () => NODE.mem, share: () => GIB };
  const engine = createEngine(createState(), scheduler, journal, createClock(), {
    memory: { largest: () => NODE.mem, learned: learnedMemory(expected, nodes) },
  });
  const requests = createAutoRequests({
    engine,
    known: expected,
    nodes,
    first,
    scheduler,
    patienceMs: () => patienceMs,
  });
  const { listeners, state } = engine;
  listeners.attemptOver = requests.attemptOver;
  listeners.taskEnded = (run, row) => {
    expected.taskEnded(run, row);
    requests.taskEnded(run, row);
  };
  const given: { row: number; mem: number; timeRequest: number }[] = [];
  listeners.assigned = (_agent, parts) => {
    for (const { run: id, ranges } of parts)
      for (let i = 0; i < ranges.length; i += 2)
        for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
          const shape = shapeOfRow(groupOf(state.runs.get(id)!.groups, row), row);
          given.push({ row, mem: shape.resources["mem"]!, timeRequest: shape.timeRequest });
        }
  };
  if (withNode) scheduler.addAgent(OFFER);
  engine.commit({
    type: "agent.joined",
    at: 1,
    agent: 1,
    uuid: "a",
    pilot: 1,
    host: "h",
    version: "1",
    resources: NODE,
    output: "",
    seq: 0,
  });
  engine.rebuildQueues();

  const submit = (id: number, count: number, more: Partial<GroupSpec> = {}): Run => {
    engine.commit({
      type: "run.opened",
      at: 1,
      run: id,
      uuid: `u${id}`,
      spec: spec([group("a", count, { ...AUTO, ...more })]),
    });
    engine.commit({ type: "run.committed", at: 1, run: id });
    const run = state.runs.get(id)!;
    expected.begin(run);
    requests.begin(run);
    return run;
  };

  let seq = 0;
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) {
      await engine.whenDurable();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  /** Ends the first task that the node has. */
  const endOne = (run: Run, peakOf: (row: number) => number): void => {
    for (let row = 0; row < run.total; row += 1) {
      const page = touch(run.table, row);
      if (page.agent[row] === 0 || isFinalTask(page.state[row]!)) continue;
      const enough = shapeOfRow(run.groups[0]!, row).resources["mem"]! >= peakOf(row);
      engine.commit({
        type: "tasks.ended",
        at: 1,
        agent: 1,
        seq: (seq += 1),
        parts: [
          {
            run: run.id,
            rows: Uint32Array.of(row),
            attempt: page.attempt[row]!,
            ending: enough ? Ending.EXIT : Ending.MEMORY,
            code: enough ? 0 : -9,
            started: 1000,
            finished: 21_000,
            outAt: -1,
            outBytes: 0,
            errBytes: 0,
            peak: peakPages(peakOf(row)),
            peakBy: PeakBy.CGROUP,
            details: [],
          },
        ],
      });
      return;
    }
  };
  const endNext = async (run: Run, peakOf: (row: number) => number, count: number): Promise<void> => {
    await settle();
    for (let i = 0; i < count; i += 1) endOne(run, peakOf);
    await settle();
  };
  /** Ends what the node has, until the run is over. */
  const finish = async (run: Run, peakOf: (row: number) => number): Promise<void> => {
    for (let turn = 0; run.finished === 0 && turn < 5000; turn += 1) {
      await engine.whenDurable();
      await new Promise((resolve) => setImmediate(resolve));
      endOne(run, peakOf);
    }
  };
  return { engine, journal, learned, given, submit, finish, endNext };
};

describe("mem: auto", () => {
  it("the first tasks get the default, later ones of the same run what was learned; each attempt keeps its own", async () => {
    const { journal, given, submit, finish } = await start();
    const run = submit(1, 60);
    await finish(run, () => 5 * GIB);
    const count = (mem: number): number => given.filter((each) => each.mem === mem).length;
    // a few begin with the default, though there is room for more
    expect(count(2 * GIB)).toBe(firstOf(60));
    // they are killed: what has not begun is tried with twice as much, and then with what such tasks need
    expect(given.findLast(({ row }) => row === 59)).toEqual({ row: 59, mem: roomFor(5 * GIB), timeRequest: 22 });
    expect(run.counts.at(-1) ?? 0).toBe(0);
    expect(run.retries).toBe(0);
    await journal.close();
  });

  it("the others wait for the first, and go when these end well: one end decides nothing, two do", async () => {
    const { engine, journal, given, submit, endNext } = await start();
    const run = submit(1, 60);
    const [tasks] = run.groups;
    await endNext(run, () => GIB, 0);
    expect(given).toHaveLength(8);
    expect([7, 8, 59].map((row) => engine.scheduler.isHeld(run, row))).toEqual([false, true, true]);
    // fleets and people know of all of them
    expect(engine.scheduler.waiting()).toBe(52);
    expect(engine.scheduler.demand().reduce((sum, { waiting }) => sum + waiting, 0)).toBe(52);
    await endNext(run, () => GIB, 1);
    expect(given).toHaveLength(9);
    await endNext(run, () => GIB, 1);
    // all its slots, besides the two that have ended
    expect(given).toHaveLength(18);
    expect(engine.scheduler.isHeld(run, 59)).toBe(false);
    expect(tasks!.done).toBe(2);
    await journal.close();
  });

  it("what is killed goes on with more, and those behind it with as much; all end, none is tried for nothing", async () => {
    const { journal, given, submit, finish } = await start();
    const run = submit(1, 300);
    await finish(run, () => 3 * GIB);
    expect(run.groups[0]!.done).toBe(300);
    // the first ones, and nobody else
    expect(given.filter(({ mem }) => mem < 3 * GIB)).toHaveLength(8);
    await journal.close();
  });

  it("when nothing is heard for long all go, but not before an agent has any; a cancelled run is let go of", async () => {
    const { engine, journal, given, submit, endNext } = await start(createLearned(), 20_000, false);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const run = submit(1, 60);
      vi.advanceTimersByTime(70_000);
      expect(engine.scheduler.isHeld(run, 59)).toBe(true);
      engine.scheduler.addAgent(OFFER);
      engine.schedulePass();
      await endNext(run, () => GIB, 0);
      expect(given).toHaveLength(8);
      vi.advanceTimersByTime(9000);
      expect(engine.scheduler.isHeld(run, 59)).toBe(true);
      vi.advanceTimersByTime(20_000);
      expect(engine.scheduler.isHeld(run, 59)).toBe(false);
      await endNext(run, () => GIB, 0);
      expect(given.length).toBeGreaterThan(20);
      const other = submit(2, 60);
      expect(engine.scheduler.isHeld(other, 59)).toBe(true);
      engine.commit({ type: "run.canceled", at: 2, run: 2, reason: "no" });
      expect(engine.scheduler.isHeld(other, 59)).toBe(false);
    } finally {
      vi.useRealTimers();
    }
    await journal.close();
  });

  it("another run of the same template begins with what is known, and few are killed", async () => {
    const first = await start();
    await first.finish(first.submit(1, 60), (row) => (row % 10 === 0 ? 8 : 1) * GIB);
    await first.journal.close();
    const second = await start(first.learned);
    const run = second.submit(1, 40);
    await second.finish(run, (row) => (row % 10 === 0 ? 8 : 1) * GIB);
    const amounts = second.given.filter(({ row }) => row % 10 !== 0).map(({ mem }) => mem);
    expect(new Set(amounts)).toEqual(new Set([roomFor(GIB)]));
    // those that need more are killed once, and get what such tasks need, not just twice as much
    const heavy = second.given.filter(({ row }) => row % 10 === 0);
    expect(heavy.map(({ mem }) => mem).toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 4 }, () => roomFor(GIB)),
      ...Array.from({ length: 4 }, () => roomFor(8 * GIB)),
    ]);
    await second.journal.close();
  });

  it("a group that does not say auto is left alone", async () => {
    const { journal, given, submit, finish } = await start();
    const fixed = { resources: { cpus: FRACTION, mem: 6 * GIB }, auto: undefined };
    await finish(submit(1, 30, fixed as unknown as Partial<GroupSpec>), () => GIB);
    expect(new Set(given.map(({ mem }) => mem))).toEqual(new Set([6 * GIB]));
    await journal.close();
  });
});
