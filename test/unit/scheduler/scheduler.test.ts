import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRACTION, type Resources } from "../../../src/core/resources.ts";
import { type Run, createRun, groupOf, shapeOfRow } from "../../../src/core/run.ts";
import { Task } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { prefetchLoad, DEFAULT_PREFETCH } from "../../../src/scheduler/capacity.ts";
import { type Assignment, type Scheduler, createScheduler } from "../../../src/scheduler/scheduler.ts";
import { group, spec } from "../core/model.ts";

const cpus = (n: number): Resources => ({ cpus: n * FRACTION });

let nextRun = 1;
const makeRun = (...groups: Parameters<typeof spec>[0]): Run => {
  const run = createRun(nextRun, `u${nextRun}`, spec(groups), 0, new Map());
  nextRun += 1;
  for (const each of run.groups) each.base = Task.PENDING;
  return run;
};

const addAgent = (scheduler: Scheduler, id: number, resources: Resources, endsAt = Infinity): void =>
  scheduler.addAgent({ id, resources, cluster: "local", queue: "default", pilot: 1, endsAt });

const countOf = (assignments: readonly Assignment[], agent?: number): number =>
  assignments
    .filter((each) => agent === undefined || each.agent === agent)
    .flatMap((each) => each.parts)
    .reduce((sum, { ranges }) => sum + ranges.reduce((n, value, i) => (i % 2 === 1 ? n + value : n), 0), 0);

/** Does to the table what the event would do. */
const applyAll = (runs: readonly Run[], assignments: readonly Assignment[]): [number, Run, number][] =>
  assignments.flatMap(({ agent, parts }) =>
    parts.flatMap(({ run: id, ranges }) => {
      const run = runs.find((each) => each.id === id)!;
      const rows: [number, Run, number][] = [];
      for (let i = 0; i < ranges.length; i += 2)
        for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
          const page = touch(run.table, row);
          expect(page.agent[row % run.table.pageRows]).toBe(0);
          page.agent[row % run.table.pageRows] = agent;
          page.state[row % run.table.pageRows] = Task.SCHEDULING;
          rows.push([agent, run, row]);
        }
      return rows;
    }),
  );

describe("scheduler.pass", () => {
  it("fills slots first, then prefetches as much again while durations are unknown", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(4));
    const run = makeRun(group("a", 100));
    scheduler.ready(run, 0, 100);
    expect(countOf(scheduler.pass(0))).toBe(8);
    expect(scheduler.loadOf(1)).toEqual({ count: 8, backlog: 4 });
  });

  it("rule 9: prefetch is bounded in expected seconds, not only in count", () => {
    expect(prefetchLoad(DEFAULT_PREFETCH, 1, 2)).toBe(500);
    expect(prefetchLoad(DEFAULT_PREFETCH, 0, 2)).toBe(DEFAULT_PREFETCH.count / 2);
    expect(prefetchLoad(DEFAULT_PREFETCH, 900, 2)).toBe(1);
    expect(prefetchLoad(DEFAULT_PREFETCH, 10_000, 2)).toBe(0);
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(4));
    const run = makeRun(group("a", 100_000));
    run.groups[0]!.expectedMs = 10;
    scheduler.ready(run, 0, 100_000);
    expect(countOf(scheduler.pass(0))).toBe(4 + 4 * 50);
  });

  it("gives every free slot a task before any agent hoards, and shares what waits", () => {
    const scheduler = createScheduler();
    for (const id of [1, 2, 3]) addAgent(scheduler, id, cpus(4));
    const run = makeRun(group("a", 12));
    run.groups[0]!.expectedMs = 0.01;
    scheduler.ready(run, 0, 12);
    const made = scheduler.pass(0);
    for (const id of [1, 2, 3]) expect(countOf(made, id)).toBe(4);
  });

  it("places the higher priority first, whatever came first", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(2));
    const low = makeRun(group("low", 10));
    const high = makeRun(group("high", 2, { priority: 5 }));
    scheduler.ready(low, 0, 10);
    scheduler.ready(high, 0, 2);
    const [{ parts } = { parts: [] }] = scheduler.pass(0);
    expect(parts[0]).toEqual({ run: high.id, ranges: [0, 2] });
  });

  it("prefetches nothing of a lower priority past a higher one of its shape", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(1));
    const high = makeRun(group("high", 3, { priority: 7 }));
    const low = makeRun(group("low", 3, { priority: -5 }));
    low.groups[0]!.expectedMs = 1;
    scheduler.ready(low, 0, 3);
    scheduler.ready(high, 0, 3);
    // nothing is known of the high ones: one runs, one waits at the agent
    expect(scheduler.pass(0).flatMap(({ parts }) => parts)).toEqual([{ run: high.id, ranges: [0, 2] }]);
  });

  it("uses cpus that gpu tasks leave free", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, { cpus: 64 * FRACTION, gpus: 4 * FRACTION });
    const run = makeRun(group("gpu", 4, { resources: { cpus: FRACTION, gpus: FRACTION } }), group("cpu", 100));
    for (const each of run.groups) each.expectedMs = 3_600_000;
    scheduler.ready(run, 0, 104);
    expect(countOf(scheduler.pass(0))).toBe(64);
  });

  it("places a time-request only where that much time is left", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(4), 60_000);
    const run = makeRun(group("long", 1, { timeRequest: 120 }), group("short", 1, { timeRequest: 30 }));
    scheduler.ready(run, 0, 2);
    expect(scheduler.pass(0).flatMap(({ parts }) => parts)).toEqual([{ run: run.id, ranges: [1, 1] }]);
    addAgent(scheduler, 2, cpus(4), 600_000);
    expect(countOf(scheduler.pass(0), 2)).toBe(1);
  });

  it("gives nothing to a paused agent, and goes on when it is back", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(4));
    scheduler.pause(1, true);
    const run = makeRun(group("a", 1));
    scheduler.ready(run, 0, 1);
    expect(scheduler.pass(0)).toEqual([]);
    scheduler.pause(1, false);
    expect(countOf(scheduler.pass(0))).toBe(1);
  });

  it("asks the busy for what has not begun when others are idle", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(2));
    const run = makeRun(group("a", 4));
    scheduler.ready(run, 0, 4);
    applyAll([run], scheduler.pass(0));
    expect(scheduler.rebalance(0).asks).toEqual([]);
    addAgent(scheduler, 2, cpus(2));
    expect(scheduler.rebalance(0).asks).toEqual([{ agent: 1, count: 1 }]);
  });

  it("takes back what waits at one agent for free slots of another that is not idle", () => {
    const scheduler = createScheduler(DEFAULT_PREFETCH, "local");
    addAgent(scheduler, 1, cpus(2));
    const run = makeRun(group("a", 7));
    scheduler.ready(run, 0, 4);
    applyAll([run], scheduler.pass(0));
    addAgent(scheduler, 2, cpus(4));
    // in another cluster: its slots are not for these
    scheduler.addAgent({ id: 3, resources: cpus(9), cluster: "c", queue: "q", pilot: 3, endsAt: Infinity });
    for (const row of [4, 5, 6]) scheduler.restore(run, row, 2);
    expect([1, 2].map((id) => scheduler.loadOf(id))).toEqual([
      { count: 4, backlog: 2 },
      { count: 3, backlog: 0 },
    ]);
    expect(scheduler.rebalance(0).asks).toEqual([{ agent: 1, count: 1 }]);
    scheduler.restore(run, 6, 2);
    expect(scheduler.rebalance(0).asks).toEqual([]);
  });

  it("rule 9: leaves what should be done in a moment where it is, for a moment", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(2));
    const run = makeRun(group("a", 40));
    run.groups[0]!.expectedMs = 0.1;
    scheduler.ready(run, 0, 40);
    applyAll([run], scheduler.pass(1000));
    addAgent(scheduler, 2, cpus(2));
    expect(scheduler.rebalance(1001)).toEqual({ asks: [], againMs: 199 });
    expect(scheduler.rebalance(1200)).toEqual({ asks: [{ agent: 1, count: 2 }], againMs: undefined });
  });

  it("gives each its share at once, whoever comes first, and takes nothing from those who are late", () => {
    const agents = Array.from({ length: 20 }, (_, i) => i + 1);
    const scheduler = createScheduler();
    for (const id of agents) addAgent(scheduler, id, cpus(1));
    const run = makeRun(group("a", 5000));
    scheduler.ready(run, 0, 5000);
    const has = new Map(agents.map((id) => [id, [] as number[]]));
    const place = (): void => {
      for (const [agent, , row] of applyAll([run], scheduler.pass(0))) has.get(agent)!.push(row);
    };
    place();
    run.groups[0]!.expectedMs = 0;
    const finish = (id: number): void => {
      for (const row of has.get(id)!.splice(0)) scheduler.left(run, row, id);
      place();
    };
    const shares = agents.map((id) => {
      finish(id);
      return has.get(id)!.length;
    });
    expect(scheduler.waiting()).toBe(0);
    // equal, up to one slot and one rounded task each, which the last one lacks
    for (const share of shares) expect(Math.abs(share - 250)).toBeLessThan(2 * agents.length);
  });

  it("fills agents that have tasks before idle ones, so that pilots which are not needed empty", () => {
    const scheduler = createScheduler();
    for (const id of [1, 2, 3]) addAgent(scheduler, id, cpus(4));
    const run = makeRun(group("a", 6));
    scheduler.ready(run, 0, 1);
    applyAll([run], scheduler.pass(0));
    const [busy] = [1, 2, 3].filter((id) => scheduler.loadOf(id)!.count === 1);
    scheduler.ready(run, 1, 3);
    expect(countOf(scheduler.pass(0), busy!)).toBe(3);
    scheduler.left(run, 0, busy!);
    scheduler.ready(run, 4, 1);
    expect(countOf(scheduler.pass(0), busy!)).toBe(1);
  });

  it("tasks that name no cluster go to agents of the default one alone", () => {
    const scheduler = createScheduler(DEFAULT_PREFETCH, "home");
    scheduler.addAgent({ id: 1, resources: cpus(4), cluster: "away", queue: "q", pilot: 1, endsAt: Infinity });
    const run = makeRun(group("a", 1));
    scheduler.ready(run, 0, 1);
    expect(scheduler.pass(0)).toEqual([]);
    scheduler.addAgent({ id: 2, resources: cpus(4), cluster: "home", queue: "q", pilot: 2, endsAt: Infinity });
    expect(countOf(scheduler.pass(0), 2)).toBe(1);
  });

  it("an agent that says when its pilot ends gets no longer time-request from then on", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(4));
    scheduler.setEnd(1, 60_000);
    const run = makeRun(group("long", 1, { timeRequest: 120 }));
    scheduler.ready(run, 0, 1);
    expect(scheduler.pass(0)).toEqual([]);
  });

  it("tells demand with what it is expected to take, and how much of an agent is in use", () => {
    const scheduler = createScheduler();
    const run = makeRun(group("a", 300), group("b", 50));
    for (const each of run.groups) each.expectedMs = 2000;
    scheduler.ready(run, 0, 350);
    expect(scheduler.demand()).toMatchObject([{ waiting: 350, sample: { tasks: 100, knownMs: 200_000, unknown: 0 } }]);
    addAgent(scheduler, 1, cpus(4));
    applyAll([run], scheduler.pass(0));
    const { used, seconds } = scheduler.occupancyOf(1, 60);
    expect(used).toBe(scheduler.loadOf(1)!.count / 4);
    expect(seconds).toBe(used * 2);
  });

  it("a row whose next attempt asks for more waits in a shape of its own, beside the rest of its range", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(8));
    const run = makeRun(group("a", 6));
    const of = run.groups[0]!;
    of.laterShapes = new Map([[2, of.laterSet.of(of.spec, cpus(8))]]);
    scheduler.ready(run, 0, 6);
    const waiting = (): number[] => scheduler.demand().map((each) => each.waiting);
    expect(waiting()).toEqual([5, 1]);
    const placed = applyAll([run], scheduler.pass(0));
    // it was tried before, so it goes first, and needs all eight cores; the others wait behind it
    expect(placed.map(([, , row]) => row)).toEqual([2, 0, 1, 3, 4, 5]);
    expect(scheduler.loadOf(1)).toEqual({ count: 6, backlog: 5 });
    scheduler.left(run, 2, 1);
    expect(scheduler.loadOf(1)).toEqual({ count: 5, backlog: 0 });
    for (const row of [0, 1, 3, 4, 5]) scheduler.left(run, row, 1);
    expect(scheduler.loadOf(1)).toEqual({ count: 0, backlog: 0 });
    expect(waiting()).toEqual([]);
  });

  it("withdraws all that waits in a shape, and nothing else", () => {
    const scheduler = createScheduler();
    const run = makeRun(group("a", 5), group("b", 2, { resources: cpus(2) }));
    scheduler.ready(run, 0, 7);
    touch(run.table, 1).state[1] = Task.CANCELED;
    expect(scheduler.withdraw((shape) => shape === run.groups[0]!.shape)).toEqual([
      { run: run.id, ranges: [0, 1, 2, 3] },
    ]);
    expect(scheduler.demand()).toMatchObject([{ waiting: 2 }]);
    addAgent(scheduler, 1, cpus(4));
    expect(countOf(scheduler.pass(0))).toBe(2);
  });

  it("passes over rows that were cancelled while they waited", () => {
    const scheduler = createScheduler();
    addAgent(scheduler, 1, cpus(1));
    const run = makeRun(group("a", 3));
    scheduler.ready(run, 0, 3);
    touch(run.table, 0).state[0] = Task.CANCELED;
    expect(scheduler.pass(0).flatMap(({ parts }) => parts)).toEqual([{ run: run.id, ranges: [1, 2] }]);
  });

  it("never places a row twice, and loses none, on any nodes with any shapes", () => {
    const shapes = [cpus(1), cpus(2), { cpus: FRACTION, gpus: FRACTION / 2 }, { cpus: FRACTION / 4 }, { mem: 3000 }];
    fc.assert(
      fc.property(
        fc.array(fc.record({ count: fc.integer({ min: 1, max: 30 }), shape: fc.nat(4), priority: fc.nat(2) }), {
          minLength: 1,
          maxLength: 6,
        }),
        fc.array(fc.record({ cpus: fc.integer({ min: 2, max: 8 }), gpus: fc.integer({ min: 1, max: 2 }) }), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.array(fc.nat(), { maxLength: 200 }),
        (groups, nodes, picks) => {
          const scheduler = createScheduler();
          const capacity = new Map(
            nodes.map((node, i) => [i + 1, { cpus: node.cpus * FRACTION, gpus: node.gpus * FRACTION, mem: 10_000 }]),
          );
          for (const [id, resources] of capacity) addAgent(scheduler, id, resources);
          const run = makeRun(
            ...groups.map(({ count, shape, priority }, i) =>
              group(`g${i}`, count, { resources: shapes[shape]!, priority }),
            ),
          );
          scheduler.ready(run, 0, run.total);
          let held: [number, Run, number][] = applyAll([run], scheduler.pass(0));
          let ended = 0;
          for (let turn = 0; held.length > 0; turn += 1) {
            const at = (picks[turn % Math.max(1, picks.length)] ?? 0) % held.length;
            const [agent, , row] = held[at]!;
            held = held.filter((_, i) => i !== at);
            const page = touch(run.table, row);
            page.state[row % run.table.pageRows] = Task.DONE;
            scheduler.left(run, row, agent);
            ended += 1;
            held.push(...applyAll([run], scheduler.pass(0)));
            for (const id of capacity.keys()) {
              const mine = held
                .filter(([each]) => each === id)
                .map(([, , each]) => shapeOfRow(groupOf(run.groups, each), each));
              const load = scheduler.loadOf(id)!;
              expect(load.count).toBe(mine.length);
              expect(load.backlog).toBeGreaterThanOrEqual(0);
            }
          }
          expect(ended).toBe(run.total);
          expect(scheduler.waiting()).toBe(0);
        },
      ),
      { numRuns: 100 },
    );
  });

  it("leaves no agent idle that some waiting task fits, whatever the order of shapes", () => {
    const amount = fc.record({ cpus: fc.integer({ min: 1, max: 5 }), gpus: fc.integer({ min: 0, max: 2 }) });
    fc.assert(
      fc.property(
        fc.array(fc.record({ shape: amount, count: fc.integer({ min: 1, max: 6 }) }), { minLength: 1, maxLength: 8 }),
        fc.array(amount, { minLength: 1, maxLength: 5 }),
        (groups, nodes) => {
          const scheduler = createScheduler();
          const free = nodes.map(({ cpus, gpus }) => ({ cpus: cpus * FRACTION, gpus: gpus * FRACTION }));
          for (const [i, resources] of free.entries()) addAgent(scheduler, i + 1, { ...resources });
          const units = groups.map(({ shape }) => ({
            cpus: shape.cpus * FRACTION,
            ...(shape.gpus > 0 ? { gpus: shape.gpus * FRACTION } : {}),
          }));
          const run = makeRun(...groups.map(({ count }, i) => group(`g${i}`, count, { resources: units[i]! })));
          // long tasks are not held in advance: what an agent has, it runs
          run.meanMs = 1e9;
          scheduler.ready(run, 0, run.total);
          for (const [agent, , row] of applyAll([run], scheduler.pass(0))) {
            const { resources } = shapeOfRow(groupOf(run.groups, row), row);
            free[agent - 1]!.cpus -= resources["cpus"]!;
            free[agent - 1]!.gpus -= resources["gpus"] ?? 0;
          }
          // the first that fits nowhere may keep an agent to itself
          for (const { shape } of scheduler.demand().slice(1))
            for (const { cpus, gpus } of free)
              expect(shape.resources["cpus"]! <= cpus && (shape.resources["gpus"] ?? 0) <= gpus).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("costs no look at shapes that do not fit: 10,000 of them wait, an agent takes what it has room for", () => {
    const scheduler = createScheduler();
    let looks = 0;
    const count = 10_000;
    const groups = Array.from({ length: count }, (_, i) => {
      const resources = { cpus: (i % 1000 === 7 ? 1 : 50 + (i % 40)) * FRACTION, red: i * FRACTION };
      return group(`g${i}`, 1, { resources });
    });
    const run = makeRun(...groups);
    for (const each of run.groups) {
      const { least } = each.shape.bucket;
      const counted = new Proxy(least, {
        get: (from, name) => {
          looks += 1;
          return Reflect.get(from, name) as unknown;
        },
      });
      Object.defineProperty(each.shape.bucket, "least", { value: counted });
    }
    scheduler.addAgent({
      id: 1,
      resources: { cpus: 4 * FRACTION, red: count * FRACTION * 100 },
      cluster: "local",
      queue: "default",
      pilot: 1,
      endsAt: Infinity,
    });
    scheduler.ready(run, 0, count);
    looks = 0;
    const placed = applyAll([run], scheduler.pass(0));
    expect(placed.map(([, , row]) => row)).toEqual([7, 1007, 2007, 3007, 4007, 5007, 6007, 7007]);
    for (const [agent, , row] of placed.slice(0, 2)) scheduler.left(run, row, agent);
    scheduler.pass(1);
    expect(looks).toBeLessThan(count / 2);
  });
});
