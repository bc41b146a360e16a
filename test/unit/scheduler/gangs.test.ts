import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Run, createRun } from "../../../src/core/run.ts";
import { Task } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { placeRanks } from "../../../src/scheduler/gangs.ts";
import { type Assignment, type Scheduler, createScheduler } from "../../../src/scheduler/scheduler.ts";
import { group, spec } from "../core/model.ts";

describe("placeRanks", () => {
  it("puts agents in the order of their hosts, however they joined, each with its own ranks", () => {
    const rooms = [
      { agent: 1, host: "n10", room: 1 },
      { agent: 2, host: "n9", room: 4 },
      { agent: 3, host: "n2", room: 2 },
    ];
    expect(placeRanks({ count: 7, by: "agents" }, rooms)).toEqual({ agents: [3, 2, 1], ranks: [2, 4, 1] });
    expect(placeRanks({ count: 4, nodes: 3, by: "agents" }, rooms)).toEqual({ agents: [3, 2, 1], ranks: [2, 1, 1] });
  });

  it.each([
    { ask: { count: 4 }, rooms: [4, 8], gives: [[2], [4]] },
    {
      ask: { count: 10 },
      rooms: [4, 8],
      gives: [
        [1, 2],
        [2, 8],
      ],
    },
    { ask: { count: 13 }, rooms: [4, 8], gives: undefined },
    {
      ask: { count: 4, nodes: 2 },
      rooms: [4, 8, 2],
      gives: [
        [1, 3],
        [2, 2],
      ],
    },
    { ask: { count: 5, nodes: 2 }, rooms: [2, 2], gives: undefined },
    {
      ask: { count: 5, nodes: 2 },
      rooms: [2, 3, 9],
      gives: [
        [1, 2],
        [2, 3],
      ],
    },
    { ask: { count: 2, nodes: 3 }, rooms: [9, 9, 9], gives: undefined },
    { ask: { count: 3, nodes: 3 }, rooms: [1, 0, 1], gives: undefined },
  ] as const)("$ask among $rooms", ({ ask, rooms, gives }) => {
    const placed = placeRanks(
      { by: "agents", ...ask },
      rooms.map((room, i) => ({ agent: i + 1, room })),
    );
    expect(placed).toEqual(gives === undefined ? undefined : { agents: gives[0], ranks: gives[1] });
  });

  it("places all ranks or none, never more on an agent than it has room for", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
        fc.array(fc.nat(12), { minLength: 1, maxLength: 10 }),
        (count, nodes, rooms) => {
          const ask = nodes === undefined ? { count, by: "agents" as const } : { count, nodes, by: "agents" as const };
          const placed = placeRanks(
            ask,
            rooms.map((room, i) => ({ agent: i + 1, room })),
          );
          if (placed === undefined) {
            if (nodes === undefined) expect(rooms.reduce((sum, room) => sum + room, 0)).toBeLessThan(count);
            return;
          }
          expect(placed.ranks.reduce((sum, ranks) => sum + ranks, 0)).toBe(count);
          expect(new Set(placed.agents).size).toBe(placed.agents.length);
          for (const [i, agent] of placed.agents.entries()) {
            expect(placed.ranks[i]).toBeGreaterThan(0);
            expect(placed.ranks[i]).toBeLessThanOrEqual(rooms[agent - 1]!);
          }
          if (nodes === undefined) return;
          expect(placed.agents.length).toBe(nodes);
          expect(Math.max(...placed.ranks) - Math.min(...placed.ranks)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});

let nextRun = 1;
const makeRun = (...groups: Parameters<typeof spec>[0]): Run => {
  const run = createRun(nextRun, `u${nextRun}`, spec(groups), 0, new Map());
  nextRun += 1;
  for (const each of run.groups) each.base = Task.PENDING;
  return run;
};
const large = (count: number, nodes?: number, priority = 0) =>
  group("large", 1, { priority, ranks: { count, by: "agents", ...(nodes === undefined ? {} : { nodes }) } });
const cluster = (scheduler: Scheduler, pilots: readonly number[], cpus: number): void => {
  for (const [i, pilot] of pilots.entries())
    scheduler.addAgent({
      id: i + 1,
      resources: { cpus: cpus * FRACTION },
      cluster: "c",
      queue: "q",
      pilot,
      endsAt: Infinity,
    });
};
const apply = (runs: readonly Run[], assignments: readonly Assignment[]): void => {
  for (const { agent, parts } of assignments)
    for (const { run: id, ranges } of parts)
      for (let i = 0; i < ranges.length; i += 2)
        for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
          const page = touch(runs.find((run) => run.id === id)!.table, row);
          page.agent[row] = agent;
          page.state[row] = Task.SCHEDULING;
        }
};

describe("the first task in order", () => {
  it("that waits for a licence keeps others from the licence, not from the cores", () => {
    const scheduler = createScheduler();
    const resources = { cpus: 4 * FRACTION, licence: FRACTION };
    scheduler.addAgent({ id: 1, resources, cluster: "c", queue: "q", pilot: 1, endsAt: Infinity });
    const licensed = makeRun(group("licensed", 10, { resources: { cpus: FRACTION, licence: FRACTION } }));
    const plain = makeRun(group("plain", 100));
    scheduler.ready(licensed, 0, 10);
    apply([licensed], scheduler.pass(0));
    scheduler.ready(plain, 0, 100);
    const placed = scheduler.pass(0).flatMap(({ parts }) => parts.filter(({ run }) => run === plain.id));
    expect(placed.length).toBe(1);
    expect(placed[0]!.ranges[1]).toBeGreaterThanOrEqual(3);
  });
});

describe("a task with ranks", () => {
  it("gets agents of one pilot, all at once, and gives them all back", () => {
    const scheduler = createScheduler();
    cluster(scheduler, [1, 2, 2], 4);
    const run = makeRun(large(8));
    scheduler.ready(run, 0, 1);
    const passed = scheduler.pass(0);
    expect(passed).toEqual([
      { agent: 2, parts: [{ run: run.id, ranges: [0, 1] }], gang: { agents: [2, 3], ranks: [4, 4] } },
    ]);
    apply([run], passed);
    const later = makeRun(group("small", 20));
    scheduler.ready(later, 0, 20);
    const next = scheduler.pass(0);
    scheduler.leftGang(run.groups[0]!.shape, passed[0]!.gang!);
    expect(scheduler.loadOf(2)!.count + scheduler.loadOf(3)!.count).toBe(
      next.filter(({ agent }) => agent > 1).reduce((sum, { parts }) => sum + parts[0]!.ranges[1]!, 0),
    );
  });

  it("waits when no pilot has room for all of it, and is never split over two", () => {
    const scheduler = createScheduler();
    cluster(scheduler, [1, 2], 4);
    const run = makeRun(large(8));
    scheduler.ready(run, 0, 1);
    expect(scheduler.pass(0)).toEqual([]);
  });

  it.each(["several nodes", "one large agent"])("at the head of the queue is not starved by small ones: %s", (kind) => {
    const scheduler = createScheduler();
    cluster(scheduler, [1, 1], 4);
    const small = makeRun(group("small", 1000));
    const first = makeRun(group("first", 6));
    scheduler.ready(first, 0, 6);
    const runs = [small, first];
    const begun = scheduler.pass(0);
    apply(runs, begun);
    const big =
      kind === "several nodes"
        ? makeRun(large(8, 2, 1))
        : makeRun(group("big", 1, { priority: 1, resources: { cpus: 4 * FRACTION } }));
    runs.push(big);
    scheduler.ready(big, 0, 1);
    scheduler.ready(small, 0, 1000);
    const queue: { run: Run; row: number; agent: number }[] = [];
    const note = (passed: readonly Assignment[]): boolean => {
      apply(runs, passed);
      for (const { agent, parts } of passed)
        for (const { run: id, ranges } of parts) {
          if (id === big.id) return true;
          for (let i = 0; i < ranges.length; i += 2)
            for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1)
              queue.push({ run: runs.find((run) => run.id === id)!, row, agent });
        }
      return false;
    };
    note(begun);
    let placed = note(scheduler.pass(0));
    // one task ends at a time, and each leaves a slot that a small one would take
    for (let ended = 0; ended < 100 && !placed; ended += 1) {
      const { run, row, agent } = queue.shift()!;
      scheduler.left(run, row, agent);
      placed = note(scheduler.pass(0));
    }
    expect(placed).toBe(true);
  });
});
