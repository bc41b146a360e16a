import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRACTION, type Resources } from "../../../src/core/resources.ts";
import { type Group, type Run, createRun } from "../../../src/core/run.ts";
import type { Condition, GroupSpec } from "../../../src/core/spec.ts";
import { Task } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { FIRST_COME, type Order } from "../../../src/scheduler/order.ts";
import { createPressureOrder } from "../../../src/scheduler/pressure-order.ts";
import { createPressures } from "../../../src/scheduler/pressure.ts";
import { DEFAULT_PREFETCH } from "../../../src/scheduler/capacity.ts";
import { type Assignment, type Scheduler, createScheduler } from "../../../src/scheduler/scheduler.ts";
import { group, spec } from "../core/model.ts";

interface Node {
  readonly ms: number;
  readonly after?: readonly (number | readonly [number, Condition])[];
  readonly count?: number;
  readonly more?: Partial<GroupSpec>;
}

let nextRun = 1;

/** A run whose groups take what they are expected to take. Those without dependencies are ready. */
const makeRun = (nodes: readonly Node[], submitted = 0): Run => {
  const groups = nodes.map(({ after = [], count = 1, more = {} }, i) =>
    group(`g${i}`, count, {
      ...more,
      after: after.map((on) => (typeof on === "number" ? { group: on, on: "ok" } : { group: on[0], on: on[1] })),
    }),
  );
  const run = createRun(nextRun, `u${nextRun}`, spec(groups), submitted, new Map());
  nextRun += 1;
  for (const [i, each] of run.groups.entries()) {
    each.expectedMs = nodes[i]!.ms;
    if (each.waits === 0) each.base = Task.PENDING;
  }
  return run;
};

const expected = (_run: Run, { expectedMs }: Group): number => expectedMs;

const naive = (run: Run, { index, expectedMs, dependents }: Group): number =>
  hasEnded(run.groups[index]!)
    ? 0
    : expectedMs +
      dependents
        .filter(({ on }) => on !== "failed")
        .reduce((longest, each) => Math.max(longest, naive(run, run.groups[each.group]!)), 0);

const hasEnded = ({ done, failed, canceled, count }: Group): boolean => done + failed + canceled === count;

const cpus = (n: number): Resources => ({ cpus: n * FRACTION });

const scheduled = (order?: Order): Scheduler => {
  // nothing is held in advance: the order of starts is that of the scheduler
  const scheduler = createScheduler({ ...DEFAULT_PREFETCH, longSeconds: 0 }, undefined, [], order);
  return scheduler;
};

const addAgent = (scheduler: Scheduler, n: number): void =>
  scheduler.addAgent({ id: 1, resources: cpus(n), cluster: "local", queue: "default", pilot: 1, endsAt: Infinity });

const begin = (runs: readonly Run[], assignments: readonly Assignment[]): { run: Run; row: number }[] =>
  assignments.flatMap(({ parts }) =>
    parts.flatMap(({ run: id, ranges }) => {
      const run = runs.find((each) => each.id === id)!;
      const rows: { run: Run; row: number }[] = [];
      for (let i = 0; i < ranges.length; i += 2)
        for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
          const page = touch(run.table, row);
          page.agent[row % run.table.pageRows] = 1;
          page.state[row % run.table.pageRows] = Task.SCHEDULING;
          rows.push({ run, row });
        }
      return rows;
    }),
  );

const end = (scheduler: Scheduler, run: Run, row: number): void => {
  touch(run.table, row).state[row % run.table.pageRows] = Task.DONE;
  scheduler.left(run, row, 1);
};

/** One slot: the order in which everything that is ready starts. */
const order = (scheduler: Scheduler, runs: readonly Run[]): string[] => {
  const names: string[] = [];
  for (;;) {
    const begun = begin(runs, scheduler.pass(0));
    if (begun.length === 0) return names;
    for (const { run, row } of begun) {
      names.push(`${runs.indexOf(run)}.${row}`);
      end(scheduler, run, row);
    }
  }
};

const arbNodes: fc.Arbitrary<Node[]> = fc
  .array(
    fc.record({
      ms: fc.integer({ min: 0, max: 1000 }),
      edges: fc.array(fc.tuple(fc.nat(), fc.constantFrom<Condition>("ok", "any", "failed")), { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 30 },
  )
  .map((nodes) =>
    nodes.map(({ ms, edges }, i) => ({
      ms,
      after: i === 0 ? [] : [...new Map(edges.map(([to, on]) => [to % i, on] as const))],
    })),
  );

describe("pressure", () => {
  it("row 001-9: is the time along the longest path to the end, the task included; an array has one", () => {
    const run = makeRun([
      { ms: 5, count: 1_000_000 },
      { ms: 10, after: [0] },
      { ms: 1, after: [0] },
      { ms: 7, after: [1, 2] },
      { ms: 1000, after: [[0, "failed"]] },
    ]);
    const pressures = createPressures(run, expected);
    expect(run.groups.map(pressures.of)).toEqual([22, 17, 8, 7, 1000]);
    expect(pressures.longest()).toBe(1000);
  });

  it("row 001-9: is kept up to date by looking only at what changes, and is what a fresh look would find", () => {
    fc.assert(
      fc.property(
        arbNodes,
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 1000 }), fc.boolean()), { maxLength: 20 }),
        (nodes, changes) => {
          const run = makeRun(nodes);
          const pressures = createPressures(run, expected);
          for (const [which, ms, over] of changes) {
            const each = run.groups[which % run.groups.length]!;
            each.expectedMs = ms;
            // cancelled, or done: it will not run
            if (over) each.canceled = each.count;
            pressures.touch(each);
            const before = run.groups.map(pressures.of);
            const { changed } = pressures.renew();
            const now = run.groups.map(pressures.of);
            expect(now).toEqual(run.groups.map((one) => naive(run, one)));
            expect(new Set(changed)).toEqual(new Set(run.groups.filter((_, i) => before[i] !== now[i])));
          }
        },
      ),
    );
  });

  it("looks at no more than 4 groups for each task that ended, however often expectations change", () => {
    const tasks = 20_000;
    const run = makeRun(Array.from({ length: tasks }, (_, i) => ({ ms: 10, after: i === 0 ? [] : [i - 1] })));
    let looks = 0;
    const ranks = createPressureOrder((_, { expectedMs }) => {
      looks += 1;
      return expectedMs;
    });
    ranks.rankOf(run, run.groups[0]!);
    looks = 0;
    for (let i = 0; i < 2000; i += 1) {
      // the last of the chain changes the pressure of all
      run.groups.at(-1)!.expectedMs += 100;
      ranks.changed(run, run.groups.at(-1)!);
      ranks.renew(1);
    }
    expect(looks).toBeLessThanOrEqual(20_000 + 2000 * 4 + tasks);
  });
});

describe("what goes first", () => {
  it("row 001-7: within a run the highest pressure, among equal priorities", () => {
    const scheduler = scheduled();
    addAgent(scheduler, 1);
    const run = makeRun([{ ms: 1 }, { ms: 3 }, { ms: 2 }, { ms: 100, after: [0] }, { ms: 1, more: { priority: 1 } }]);
    scheduler.ready(run, 0, 3);
    scheduler.ready(run, 4, 1);
    expect(order(scheduler, [run])).toEqual(["0.4", "0.0", "0.1", "0.2"]);
  });

  it("row 001-5: what waits is put in order again when expectations change, or what lies behind is cancelled", () => {
    const scheduler = scheduled();
    const run = makeRun([{ ms: 1 }, { ms: 3 }, { ms: 2 }, { ms: 5, after: [0] }]);
    addAgent(scheduler, 1);
    scheduler.ready(run, 0, 3);
    expect([0, 1, 2].map((row) => scheduler.before(run, row))).toEqual([0, 1, 2]);
    run.groups[2]!.expectedMs = 10;
    scheduler.expectationChanged(run, run.groups[2]!);
    run.groups[3]!.canceled = 1;
    scheduler.canceled(run, 3, 1);
    expect(order(scheduler, [run])).toEqual(["0.2", "0.1", "0.0"]);
  });

  it("tasks of seconds are not held at an agent, where a later one with more pressure could not pass them", () => {
    const scheduler = createScheduler(DEFAULT_PREFETCH);
    addAgent(scheduler, 1);
    const run = makeRun([{ ms: 5000, count: 4 }, { ms: 5000 }, { ms: 60_000, after: [1] }]);
    scheduler.ready(run, 0, 4);
    const [first] = begin([run], scheduler.pass(0));
    expect(scheduler.loadOf(1)).toEqual({ count: 1, backlog: 0 });
    scheduler.ready(run, 4, 1);
    end(scheduler, run, first!.row);
    expect(begin([run], scheduler.pass(0)).map(({ row }) => row)).toEqual([4]);
  });

  it("row 001-4: so a run ends sooner: the long path is not left for last", () => {
    const nodes = [
      ...Array.from({ length: 9 }, () => ({ ms: 10 })),
      { ms: 10 },
      { ms: 10, after: [9] },
      { ms: 20, after: [10] },
    ];
    const spanWith = (ranks: Order | undefined): number => {
      const scheduler = scheduled(ranks);
      addAgent(scheduler, 2);
      const run = makeRun(nodes);
      scheduler.ready(run, 0, 10);
      const running: { row: number; until: number }[] = [];
      for (let now = 0; ; now += 10) {
        for (const { row } of running.filter(({ until }) => until === now)) {
          end(scheduler, run, row);
          const next = run.groups.find(({ spec: of }) => of.after.some((on) => "group" in on && on.group === row));
          if (next === undefined) continue;
          next.base = Task.PENDING;
          touch(run.table, next.index).state[next.index] = Task.PENDING;
          scheduler.ready(run, next.index, 1);
        }
        for (const { row } of begin([run], scheduler.pass(now))) running.push({ row, until: now + nodes[row]!.ms });
        if (running.every(({ until }) => until <= now)) return now;
      }
    };
    // 130 of work on two slots, in steps of ten
    expect(spanWith(undefined)).toBe(70);
    expect(spanWith(FIRST_COME)).toBe(80);
  });

  it("between runs the one that should begin first: a short one need not wait for the end of a long one", () => {
    const scheduler = scheduled();
    addAgent(scheduler, 1);
    const long = makeRun([{ ms: 1000, count: 100 }]);
    const short = makeRun([{ ms: 1000, count: 2 }], 5000);
    const late = makeRun([{ ms: 1000, count: 2 }], 200_000);
    scheduler.ready(long, 0, 100);
    scheduler.ready(late, 0, 2);
    scheduler.ready(short, 0, 2);
    const started = order(scheduler, [long, short, late]);
    expect(started.slice(0, 2)).toEqual(["1.0", "1.1"]);
    // nothing that comes after a task should have begun passes it
    expect(started.slice(-2)).toEqual(["2.0", "2.1"]);
  });

  it("nothing waits for ever: no run passes a task that should have begun before the run came", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(arbNodes, fc.nat(5000)), { minLength: 2, maxLength: 5 }),
        fc.array(fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: 0, max: 100_000 })), { maxLength: 10 }),
        (made, changes) => {
          const ranks = createPressureOrder(expected);
          ranks.resized(FRACTION);
          const runs = made.map(([nodes, at]) => makeRun(nodes, at));
          // one cpu: a run should be over when all its work is done
          const ends = runs.map((run) => run.submitted + run.groups.reduce((sum, each) => sum + each.expectedMs, 0));
          for (const run of runs) ranks.rankOf(run, run.groups[0]!);
          for (const [which, nth, ms] of changes) {
            const run = runs[which % runs.length]!;
            const each = run.groups[nth % run.groups.length]!;
            each.expectedMs = ms;
            ranks.changed(run, each);
            ranks.renew(1000);
          }
          for (const [i, run] of runs.entries())
            for (const each of run.groups) {
              const { start } = ranks.rankOf(run, each);
              expect(start).toBeGreaterThanOrEqual(run.submitted);
              expect(start).toBeLessThanOrEqual(ends[i]!);
            }
        },
      ),
    );
  });

  it("tells when the tasks of a group should begin: the end of the run, as first estimated, less their pressure", () => {
    const scheduler = scheduled();
    addAgent(scheduler, 1);
    const run = makeRun([{ ms: 100, count: 10 }, { ms: 30, after: [0] }, { ms: 20 }], 5000);
    scheduler.ready(run, 0, 10);
    const ranks = (): object[] => run.groups.map((each) => scheduler.rankOf(run, each));
    // 1,050 of work on one slot
    expect(ranks()).toEqual([
      { start: 5920, pressure: 130 },
      { start: 6020, pressure: 30 },
      { start: 6030, pressure: 20 },
    ]);
    run.groups[1]!.expectedMs = 2000;
    scheduler.expectationChanged(run, run.groups[1]!);
    scheduler.pass(0);
    // the end stays; nothing should have begun before the run came
    expect(ranks()).toEqual([
      { start: 5000, pressure: 2100 },
      { start: 5000, pressure: 2000 },
      { start: 6030, pressure: 20 },
    ]);
  });

  it("without agents runs are in order of arrival, and are ranked when the first agent comes", () => {
    const scheduler = scheduled();
    const long = makeRun([{ ms: 1000, count: 100 }]);
    const short = makeRun([{ ms: 1000, count: 1 }], 5000);
    scheduler.ready(long, 0, 100);
    scheduler.ready(short, 0, 1);
    scheduler.pass(0);
    expect(scheduler.before(short, 0)).toBe(100);
    addAgent(scheduler, 1);
    expect(order(scheduler, [long, short])[0]).toBe("1.0");
  });
});
