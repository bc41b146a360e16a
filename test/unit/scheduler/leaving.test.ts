import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRACTION, type Resources } from "../../../src/core/resources.ts";
import { rowShapesOf } from "../../../src/core/row-shapes.ts";
import { type Run, createRun } from "../../../src/core/run.ts";
import { Task } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { type Scheduler, createScheduler } from "../../../src/scheduler/scheduler.ts";
import { group, spec } from "../core/model.ts";

const cpus = (n: number): Resources => ({ cpus: n * FRACTION });

const AGENTS = [1, 2, 3];
const SHAPES = [cpus(1), cpus(2), { ...cpus(1), mem: 3000 }];

/** Groups of equal tasks, and one whose tasks each ask for memory of their own. */
const makeRun = (counts: readonly number[], own: number): Run => {
  const groups = [...counts.map((n, i) => group(`g${i}`, n, { resources: SHAPES[i % 3]! })), group("own", own)];
  const rowShapes = rowShapesOf(groups.at(-1)!, (i) => ({ ...cpus(1), mem: 100 * (i + 1) }), own);
  const run = createRun(1, "u1", spec(groups), 0, new Map([[counts.length, { items: undefined, rowShapes }]]));
  for (const each of run.groups) each.base = Task.PENDING;
  return run;
};

/** `ask`: after every task that leaves, somebody asks what is free. */
const world = (counts: readonly number[], own: number, ask: boolean) => {
  const scheduler: Scheduler = createScheduler();
  for (const id of AGENTS)
    scheduler.addAgent({
      id,
      resources: { ...cpus(4), mem: 10_000 },
      cluster: "local",
      queue: "default",
      pilot: 1,
      endsAt: Infinity,
    });
  const run = makeRun(counts, own);
  scheduler.ready(run, 0, run.total);
  const held: { agent: number; row: number }[] = [];
  return {
    scheduler,
    held,
    place: () => {
      const assignments = scheduler.pass(0);
      for (const { agent, parts } of assignments)
        for (const { ranges } of parts)
          for (let i = 0; i < ranges.length; i += 2)
            for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
              const page = touch(run.table, row);
              page.agent[row % run.table.pageRows] = agent;
              page.state[row % run.table.pageRows] = Task.SCHEDULING;
              held.push({ agent, row });
            }
      return assignments;
    },
    end: (from: number, count: number) => {
      for (const { agent, row } of held.splice(from % Math.max(1, held.length), count)) {
        touch(run.table, row).state[row % run.table.pageRows] = Task.DONE;
        scheduler.left(run, row, agent);
        if (ask) scheduler.freeOf(agent);
      }
    },
    loads: () => AGENTS.map((id) => ({ ...scheduler.loadOf(id), free: { ...scheduler.freeOf(id) } })),
  };
};

describe("tasks that leave together", () => {
  it("leave what they would leave one by one, whatever they asked for and wherever they ran", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.record({ from: fc.nat(100), count: fc.integer({ min: 1, max: 12 }), gone: fc.nat(40) }), {
          minLength: 1,
          maxLength: 30,
        }),
        (counts, own, steps) => {
          const [together, apart] = [world(counts, own, false), world(counts, own, true)];
          expect(together.place()).toEqual(apart.place());
          for (const { from, count, gone } of steps) {
            for (const each of [together, apart]) each.end(from, count);
            if (AGENTS.includes(gone))
              for (const { scheduler, held } of [together, apart]) {
                scheduler.removeAgent(gone);
                // nobody hears of its tasks any more
                held.splice(0, held.length, ...held.filter(({ agent }) => agent !== gone));
              }
            expect(together.place()).toEqual(apart.place());
            expect(together.scheduler.rebalance(0)).toEqual(apart.scheduler.rebalance(0));
            expect(together.loads()).toEqual(apart.loads());
            expect(together.held).toEqual(apart.held);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it("are counted before anybody can tell", () => {
    const { scheduler, held, place, end } = world([8], 1, false);
    place();
    const before = scheduler.loadOf(1)!.count;
    const mine = held.filter(({ agent }) => agent === 1).length;
    expect(before).toBe(mine);
    end(0, held.length);
    expect(scheduler.loadOf(1)).toEqual({ count: 0, backlog: 0 });
    expect(scheduler.freeOf(1)).toEqual({ ...cpus(4), mem: 10_000 });
  });

  it("leave no backlog behind: nobody is asked for tasks that fit nowhere else, and those that do are asked for", () => {
    const [small, large] = [cpus(1), { ...cpus(1), mem: 2000 }];
    for (const [first, then, asks] of [
      [small, large, []],
      [large, small, [{ agent: 1, count: 1 }]],
    ] as const) {
      const scheduler = createScheduler();
      const offer = { cluster: "local", queue: "default", pilot: 1, endsAt: Infinity };
      scheduler.addAgent({ id: 1, resources: { ...cpus(4), mem: 10_000 }, ...offer });
      const run = createRun(
        1,
        "u",
        spec([group("first", 6, { resources: first }), group("then", 6, { resources: then })]),
        0,
        new Map(),
      );
      for (const each of run.groups) each.base = Task.PENDING;
      scheduler.ready(run, 0, 6);
      scheduler.pass(0);
      expect(scheduler.loadOf(1)).toEqual({ count: 6, backlog: 2 });
      for (let row = 0; row < 6; row += 1) scheduler.left(run, row, 1);
      scheduler.ready(run, 6, 6);
      scheduler.pass(0);
      expect(scheduler.loadOf(1)).toEqual({ count: 6, backlog: 2 });
      // room for either, but no memory
      scheduler.addAgent({ id: 2, resources: cpus(4), ...offer });
      expect(scheduler.rebalance(0).asks).toEqual(asks);
    }
  });
});
