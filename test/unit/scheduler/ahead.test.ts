import { describe, expect, it } from "vitest";
import { apply } from "../../../src/core/apply.ts";
import { Ending, type Event } from "../../../src/core/events.ts";
import { FRACTION, type Resources } from "../../../src/core/resources.ts";
import type { Run } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { type Effects, NO_EFFECTS, createState } from "../../../src/core/state.ts";
import { peek } from "../../../src/core/table.ts";
import { type AccountRule, type Assignment, createScheduler } from "../../../src/scheduler/scheduler.ts";
import { after, group, spec } from "../core/model.ts";

/** Which tasks are handed ahead: scheduler and core together, with agents that a test speaks for. */

const cpus = (n: number): Resources => ({ cpus: n * FRACTION });

const createWorld = (rules: readonly AccountRule[] = []) => {
  const state = createState();
  const scheduler = createScheduler(undefined, "local", rules);
  const effects: Effects = {
    ...NO_EFFECTS,
    ready: scheduler.ready,
    arrived: scheduler.arrived,
    left: scheduler.left,
    finished: scheduler.dropRun,
  };
  const seqs = new Map<number, number>();
  const send = (event: Event): void => apply(state, event, effects);
  return {
    state,
    scheduler,
    send,
    join: (resources: Resources, more: { endsAt?: number; queue?: string; ahead?: boolean } = {}): number => {
      const agent = state.nextAgent;
      const facts = { uuid: `a${agent}`, pilot: 1, host: "h", version: "1", resources, output: "", seq: 0 };
      send({ type: "agent.joined", at: 1, agent, ...facts });
      const { endsAt = Infinity, queue = "default" } = more;
      scheduler.addAgent({ id: agent, resources, cluster: "local", queue, pilot: 1, endsAt });
      scheduler.setAhead(agent, more.ahead ?? true);
      return agent;
    },
    submit: (groups: readonly GroupSpec[], expectedMs = 1): Run => {
      const run = state.nextRun;
      send({ type: "run.opened", at: 1, run, uuid: `u${run}`, spec: spec(groups) });
      send({ type: "run.committed", at: 1, run });
      for (const each of state.runs.get(run)!.groups) each.expectedMs = expectedMs;
      return state.runs.get(run)!;
    },
    pass: (now = 0): Assignment[] => {
      const made = scheduler.pass(now);
      for (const { agent, parts, ahead, gang } of made)
        send({ type: "tasks.assigned", at: 2, agent, parts, ...(ahead && { ahead }), ...(gang && { gang }) });
      return made;
    },
    end: (agent: number, run: Run, rows: readonly number[], code = 0): void => {
      const seq = (seqs.get(agent) ?? 0) + 1;
      seqs.set(agent, seq);
      const attempt = Uint16Array.from(rows, (row) => peek(run.table, row)!.attempt[row % run.table.pageRows]!);
      const facts = { ending: Ending.EXIT, code, started: 3, finished: 4, outAt: -1, outBytes: 0, errBytes: 0 };
      const part = { run: run.id, rows: Uint32Array.from(rows), attempt, ...facts, details: [] };
      send({ type: "tasks.ended", at: 4, agent, seq, parts: [part] });
    },
  };
};

const chain = (length: number, more: Partial<GroupSpec> = {}): GroupSpec[] =>
  Array.from({ length }, (_, i) => group(`t${i}`, 1, { ...more, after: i === 0 ? [] : after(i - 1) }));

const rowsOf = (parts: Assignment["parts"] = []): number[] =>
  parts.flatMap(({ ranges }) =>
    ranges.flatMap((from, i) => (i % 2 === 0 ? Array.from({ length: ranges[i + 1]! }, (_, nth) => from + nth) : [])),
  );
const aheadOf = (made: readonly Assignment[]): number[] => made.flatMap(({ ahead }) => rowsOf(ahead));
const upTo = (from: number, end: number): number[] => Array.from({ length: end - from }, (_, i) => from + i);

describe("a task is handed ahead", () => {
  it("rule 9: as many as should take half a second, and more when half of that is left", () => {
    const world = createWorld();
    const agent = world.join(cpus(1));
    const run = world.submit(chain(1000), 5);
    expect(aheadOf(world.pass())).toEqual(upTo(1, 101));
    world.end(agent, run, upTo(0, 40));
    expect(world.pass()).toEqual([]);
    world.end(agent, run, upTo(40, 60));
    expect(aheadOf(world.pass())).toEqual(upTo(101, 161));
  });

  it("one where nothing is known, none that takes long, and never more than 512", () => {
    const behind = (expected: number): number => {
      const world = createWorld();
      world.join(cpus(1));
      world.submit(chain(2000), expected);
      return aheadOf(world.pass()).length;
    };
    expect([-1, 0, 900, 1100].map(behind)).toEqual([1, 512, 1, 0]);
  });

  it("only behind one task of the same shape and priority, on ok, in groups of one without ranks", () => {
    const world = createWorld();
    world.join(cpus(8));
    const base = group("base", 1);
    const others: GroupSpec[] = [
      group("array", 4, { after: after(0) }),
      group("larger", 1, { after: after(0), resources: cpus(2) }),
      group("urgent", 1, { after: after(0), priority: 1 }),
      group("any", 1, { after: after([0, "any"]) }),
      group("handler", 1, { after: after([0, "failed"]) }),
      group("ranks", 1, { after: after(0), ranks: { count: 2, by: "agents" } }),
      group("slow", 1),
      group("two", 1, { after: after(0, 7) }),
    ];
    world.submit([base, ...others]);
    expect(aheadOf(world.pass())).toEqual([]);
  });

  it("also where other dependencies were met before, but at most one behind each task: that of the longest path", () => {
    const world = createWorld();
    const agent = world.join(cpus(1), { ahead: false });
    const groups = [
      group("first", 1),
      group("base", 1, { after: after(0) }),
      group("short", 1, { after: after(1) }),
      group("long", 1, { after: after(0, 1) }),
      group("last", 1, { after: after(3) }),
    ];
    const run = world.submit(groups);
    expect(aheadOf(world.pass())).toEqual([]);
    world.scheduler.setAhead(agent, true);
    world.end(agent, run, [0]);
    expect(aheadOf(world.pass())).toEqual([3, 4]);
    world.end(agent, run, [1, 3, 4]);
    expect(rowsOf(world.pass()[0]?.parts)).toEqual([2]);
  });

  it("not where an agent has a backlog, is paused, or never said that it takes such", () => {
    const world = createWorld();
    const agent = world.join(cpus(1), { ahead: false });
    const run = world.submit(chain(20));
    expect(aheadOf(world.pass())).toEqual([]);
    world.scheduler.setAhead(agent, true);
    world.end(agent, run, [0]);
    expect(aheadOf(world.pass())).toEqual(upTo(2, 20));
    world.scheduler.pause(agent, true);
    world.end(agent, run, upTo(1, 19));
    expect(world.pass()).toEqual([]);

    const busy = createWorld();
    const one = busy.join(cpus(1));
    const [crowd, more] = [busy.submit([group("a", 2)]), busy.submit(chain(9))];
    const [made] = busy.pass();
    expect([made?.parts.length, busy.scheduler.loadOf(one), made?.ahead]).toEqual([
      2,
      { count: 3, backlog: 2 },
      undefined,
    ]);
    busy.end(one, crowd, [0, 1]);
    busy.end(one, more, [0]);
    expect(aheadOf(busy.pass())).toEqual(upTo(2, 9));
  });

  it("not before something that waits and goes first: higher priority, or an earlier start", () => {
    const refilled = (priority: number): number => {
      const world = createWorld();
      const agent = world.join(cpus(2));
      const run = world.submit(chain(1000), 5);
      world.pass();
      // it does not fit while the chain has a slot
      world.submit([group("wide", 1, { priority, resources: cpus(2) })], 40_000);
      world.end(agent, run, upTo(0, 60));
      return aheadOf(world.pass()).length;
    };
    expect([1, 0, -1].map(refilled)).toEqual([0, 0, 60]);
  });

  it("only as many as its pilot leaves time for", () => {
    const world = createWorld();
    world.join(cpus(1), { endsAt: 35_000 });
    world.submit(chain(20, { timeRequest: 10 }));
    expect(aheadOf(world.pass())).toEqual([1, 2]);
  });

  it("never again once it was lost, nor behind one that was: nobody costs another two losses", () => {
    const world = createWorld();
    const first = world.join(cpus(1));
    world.submit(chain(5));
    expect(aheadOf(world.pass())).toEqual([1, 2, 3, 4]);
    world.send({ type: "agents.lost", at: 5, agents: [first], reason: "gone", givenUp: [] });
    world.scheduler.removeAgent(first);
    const second = world.join(cpus(1));
    const run = world.state.runs.get(1)!;
    for (let row = 0; row < 5; row += 1) {
      const [made] = world.pass();
      expect([made?.agent, rowsOf(made?.parts), made?.ahead]).toEqual([second, [row], undefined]);
      world.end(second, run, [row]);
    }
    expect(run.finished).toBeGreaterThan(0);
  });
});

describe("what is handed ahead", () => {
  it("takes over what the one before it held: no account ever has more or less", () => {
    const machine: AccountRule = { cluster: "local", machine: true, capacity: cpus(2), covers: () => true };
    const world = createWorld([machine]);
    const [one, two] = [world.join(cpus(2), { queue: "a" }), world.join(cpus(2), { queue: "b" })];
    const long = world.submit(chain(50, { queue: "a" }));
    world.submit([group("other", 5, { queue: "b" })], 40_000);
    expect(aheadOf(world.pass())).toEqual(upTo(1, 50));
    const counts = (): number[] => [one, two].map((id) => world.scheduler.loadOf(id)!.count);
    expect(counts()).toEqual([1, 1]);
    for (let row = 0; row < 49; row += 1) {
      world.end(one, long, [row]);
      expect(world.pass().flatMap(({ parts }) => parts)).toEqual([]);
      expect(counts(), `after ${row}`).toEqual([1, 1]);
    }
    world.end(one, long, [49]);
    world.pass();
    expect(counts()).toEqual([0, 2]);
  });

  it("item by item in arrays, each behind its own, where no backlog waits for the slots", () => {
    const world = createWorld();
    const agent = world.join(cpus(4));
    const by = (index: number) => ({ after: [{ group: index, on: "ok", items: "same" } as const] });
    const run = world.submit([group("a", 3), group("b", 3, by(0)), group("c", 3, by(1))]);
    expect(aheadOf(world.pass())).toEqual([3, 6, 4, 7, 5, 8]);
    world.end(agent, run, [1, 4, 0]);
    world.end(agent, run, [7, 2, 5, 8, 3, 6]);
    expect([run.finished > 0, world.scheduler.loadOf(agent)?.count]).toEqual([true, 0]);
    const crowd = world.submit([group("a", 300), group("b", 300, by(0))]);
    const made = world.pass();
    expect([rowsOf(made[0]?.parts).length > 4, aheadOf(made)]).toEqual([true, []]);
    expect(crowd.groups[1]!.done).toBe(0);
  });
});
