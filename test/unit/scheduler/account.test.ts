import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRACTION, type Resources, amountOf } from "../../../src/core/resources.ts";
import { type Run, createRun, groupOf, shapeOfRow } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { Task } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { DEFAULT_PREFETCH } from "../../../src/scheduler/capacity.ts";
import type { RankPlacement } from "../../../src/scheduler/gangs.ts";
import {
  type AccountRule,
  type AgentOffer,
  type Scheduler,
  createScheduler,
} from "../../../src/scheduler/scheduler.ts";
import { group, spec } from "../core/model.ts";

/** What a machine or a cluster has in all is never exceeded, however many agents offer it. */

const units = (amounts: Readonly<Record<string, number>>): Resources =>
  Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, amount * FRACTION]));

/** Agents that start whatever fits into their own resources, as real ones do: in no order that the server knows. */
class World {
  readonly runs: Run[] = [];
  readonly offers = new Map<number, AgentOffer>();
  readonly has = new Map<number, { run: Run; row: number; running: boolean }[]>();
  readonly gangs: { run: Run; row: number; placement: RankPlacement }[] = [];
  scheduler: Scheduler;
  private now = 0;
  private readonly rules: readonly AccountRule[];
  constructor(rules: readonly AccountRule[]) {
    this.rules = rules;
    this.scheduler = createScheduler(DEFAULT_PREFETCH, "local", rules);
  }

  submit(...groups: GroupSpec[]): Run {
    const run = createRun(this.runs.length + 1, "", spec(groups), 0, new Map());
    for (const each of run.groups) each.base = Task.PENDING;
    this.runs.push(run);
    this.scheduler.ready(run, 0, run.total);
    return run;
  }

  join(queue: string, resources: Resources, more: Partial<AgentOffer> = {}): number {
    const id = this.offers.size + 1;
    const offer = { id, resources, cluster: "local", queue, pilot: id, host: "here", endsAt: Infinity, ...more };
    this.offers.set(id, offer);
    this.has.set(id, []);
    this.scheduler.addAgent(offer);
    return id;
  }

  /** What an agent's running tasks hold. */
  held(agent: number, name: string): number {
    const alone = this.has
      .get(agent)!
      .filter(({ running }) => running)
      .reduce((sum, { run, row }) => sum + amountOf(shapeOfRow(groupOf(run.groups, row), row).resources, name), 0);
    return this.gangs.reduce((sum, { run, row, placement: { agents, ranks } }) => {
      const each = amountOf(shapeOfRow(groupOf(run.groups, row), row).resources, name);
      return sum + each * agents.reduce((count, id, i) => count + (id === agent ? ranks[i]! : 0), 0);
    }, alone);
  }

  private startAll(agent: number, newestFirst: boolean): void {
    const { resources } = this.offers.get(agent)!;
    const tasks = this.has.get(agent)!;
    for (const task of newestFirst ? tasks.toReversed() : tasks) {
      const asked = shapeOfRow(groupOf(task.run.groups, task.row), task.row).resources;
      const fits = Object.keys(asked).every(
        (name) => this.held(agent, name) + asked[name]! <= amountOf(resources, name),
      );
      if (!task.running && fits) task.running = true;
    }
  }

  /** Places what can be placed, lets the agents start what they can, and checks every account. */
  step(newestFirst = false): void {
    this.now += 1000;
    for (const { agent, parts, gang } of this.scheduler.pass(this.now))
      for (const { run: id, ranges } of parts)
        for (let i = 0; i < ranges.length; i += 2)
          for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
            const run = this.runs[id - 1]!;
            const page = touch(run.table, row);
            page.agent[row] = agent;
            page.state[row] = Task.SCHEDULING;
            if (gang === undefined) this.has.get(agent)!.push({ run, row, running: false });
            else this.gangs.push({ run, row, placement: gang });
          }
    for (const agent of this.offers.keys()) this.startAll(agent, newestFirst);
    for (const { agent, count } of this.scheduler.rebalance(this.now).asks) this.giveBack(agent, count);
    this.check();
  }

  private giveBack(agent: number, count: number): void {
    const waiting = this.has.get(agent)!.filter(({ running }) => !running);
    for (const task of waiting.slice(0, count)) this.drop(agent, task, true);
  }

  private drop(agent: number, task: { run: Run; row: number }, again: boolean): void {
    const { run, row } = task;
    const tasks = this.has.get(agent)!;
    tasks.splice(
      tasks.findIndex((each) => each === task),
      1,
    );
    const page = touch(run.table, row);
    page.agent[row] = 0;
    page.state[row] = again ? Task.PENDING : Task.DONE;
    this.scheduler.left(run, row, agent);
    if (again) this.scheduler.ready(run, row, 1);
  }

  /** Ends one running task, the nth of all; false if none runs. */
  end(nth: number): boolean {
    const running = [...this.has].flatMap(([agent, tasks]) =>
      tasks.filter((task) => task.running).map((task) => ({ agent, task })),
    );
    const all = running.length + this.gangs.length;
    if (all === 0) return false;
    const at = nth % all;
    if (at < running.length) {
      this.drop(running[at]!.agent, running[at]!.task, false);
      return true;
    }
    const [gang] = this.gangs.splice(at - running.length, 1);
    const { run, row, placement } = gang!;
    touch(run.table, row).state[row] = Task.DONE;
    this.scheduler.leftGang(shapeOfRow(groupOf(run.groups, row), row), placement);
    return true;
  }

  /** Another server takes over: it knows what the state knows. */
  restart(): void {
    this.scheduler = createScheduler(DEFAULT_PREFETCH, "local", this.rules);
    for (const offer of this.offers.values()) this.scheduler.addAgent(offer);
    for (const run of this.runs)
      for (let row = 0; row < run.total; row += 1)
        if (touch(run.table, row).state[row] === Task.PENDING) this.scheduler.ready(run, row, 1);
    for (const [agent, tasks] of this.has) for (const { run, row } of tasks) this.scheduler.restore(run, row, agent);
    for (const { run, row, placement } of this.gangs)
      this.scheduler.restoreGang(shapeOfRow(groupOf(run.groups, row), row), placement);
  }

  /** Tasks that run on a machine; those that hold nothing of it do not count. */
  private onMachine({ cluster, capacity, covers }: AccountRule): { alone: number; all: number } {
    const inside = (id: number): boolean => {
      const offer = this.offers.get(id)!;
      return offer.cluster === cluster && covers(offer);
    };
    const shapes = [
      ...[...this.has].flatMap(([id, tasks]) => (inside(id) ? tasks.filter(({ running }) => running) : [])),
      ...this.gangs.filter(({ placement }) => placement.agents.some(inside)),
    ].map(({ run, row }) => shapeOfRow(groupOf(run.groups, row), row));
    const all = shapes.filter(({ resources }) => Object.keys(capacity).some((name) => amountOf(resources, name) > 0));
    return { alone: shapes.filter(({ alone }) => alone === true).length, all: all.length };
  }

  private check(): void {
    for (const rule of this.rules.filter((each) => each.machine === true)) {
      const { alone, all } = this.onMachine(rule);
      if (alone > 0) expect(all, "tasks beside one that must be alone").toBe(1);
    }
    for (const { capacity, covers, cluster } of this.rules)
      for (const name of Object.keys(capacity)) {
        const members = [...this.offers.values()].filter((offer) => offer.cluster === cluster && covers(offer));
        const sum = members.reduce((total, { id }) => total + this.held(id, name), 0);
        expect(sum, `${name} in use`).toBeLessThanOrEqual(capacity[name]!);
      }
  }

  get running(): number {
    return [...this.has.values()].flat().filter(({ running }) => running).length + this.gangs.length;
  }
}

const machine = (amounts: Readonly<Record<string, number>>): AccountRule => ({
  cluster: "local",
  machine: true,
  capacity: units(amounts),
  covers: ({ host }) => host === "here",
});

const QUEUES = ["a", "b", "c"];

describe("scheduler.account", () => {
  it("row 001-36: two queues of one machine share its one core and its one licence", () => {
    const all = units({ cpus: 1, licence: 1 });
    const world = new World([machine({ cpus: 1, licence: 1 })]);
    world.join("a", all);
    world.join("b", all);
    world.submit(group("a", 2, { queue: "a" }), group("b", 2, { queue: "b", resources: all }));
    for (let ended = 0; ended < 4; ended += 1) {
      world.step();
      expect(world.running).toBe(1);
      world.end(0);
    }
    expect(world.end(0)).toBe(false);
  });

  it("tasks still running at agents that a new server finds again count", () => {
    const world = new World([machine({ cpus: 2 })]);
    world.join("a", units({ cpus: 2 }));
    world.join("b", units({ cpus: 2 }));
    world.submit(group("a", 1, { queue: "a", resources: units({ cpus: 2 }) }));
    world.step();
    world.restart();
    world.submit(group("b", 2, { queue: "b" }));
    world.step();
    expect(world.running).toBe(1);
    world.end(0);
    world.step();
    expect(world.running).toBe(2);
  });

  it("all ranks of a task count, on however many agents they run", () => {
    const world = new World([machine({ cpus: 4 })]);
    for (let i = 0; i < 2; i += 1) world.join("a", units({ cpus: 4 }), { pilot: 7 });
    world.submit(group("gang", 2, { ranks: { count: 4, nodes: 2, by: "agents" } }), group("one", 2));
    world.step();
    expect(world.gangs).toHaveLength(1);
    expect(world.running).toBe(1);
  });

  it("a large task is not starved by small ones at other agents", () => {
    const world = new World([machine({ cpus: 2 })]);
    world.join("a", units({ cpus: 2 }));
    world.join("b", units({ cpus: 2 }));
    world.submit(group("small", 1, { queue: "a" }), group("small", 1, { queue: "b" }));
    world.step();
    world.submit(group("large", 1, { queue: "b", resources: units({ cpus: 2 }) }));
    world.submit(group("more", 50, { queue: "a" }));
    world.step();
    world.end(0);
    world.step();
    expect(world.running).toBe(1);
    world.end(0);
    world.step();
    expect(world.held(2, "cpus")).toBe(2 * FRACTION);
  });

  it("an agent on another machine brings its own; licences are everywhere the cluster's", () => {
    const licences: AccountRule = { cluster: "local", capacity: units({ seat: 3 }), covers: () => true };
    const world = new World([machine({ cpus: 2 }), licences]);
    world.join("a", units({ cpus: 2, seat: 3 }));
    world.join("a", units({ cpus: 8, seat: 3 }), { host: "there" });
    world.submit(group("plain", 20));
    world.step();
    expect(world.running).toBe(10);
    while (world.end(0)) world.step();
    world.submit(group("seats", 20, { resources: units({ cpus: 1, seat: 1 }) }));
    world.step();
    expect(world.running).toBe(3);
  });

  it("row 001-31: a task that must be alone waits for all others, and none begins beside it, at one agent or two", () => {
    for (const agents of [1, 2]) {
      const world = new World([machine({ cpus: 4 })]);
      for (let i = 0; i < agents; i += 1) world.join("a", units({ cpus: 4 }));
      const redirect = { here: units({ cpus: 4 }) };
      world.submit(group("before", 2));
      world.step();
      world.submit(group("alone", 2, { resources: units({ cpus: 1, elsewhere: 1 }), redirect }));
      world.submit(group("after", 8));
      world.step();
      const seen: number[] = [];
      while (world.end(0)) {
        world.step();
        seen.push(world.running);
      }
      // two of those behind them began at once, none since
      expect(seen.slice(0, 6)).toEqual([3, 2, 1, 1, 1, 4]);
      expect(world.scheduler.waiting()).toBe(0);
    }
  });

  it("an agent that is alone has as much waiting there as ever", () => {
    const loads = [[], [machine({ cpus: 2 })]].map((rules) => {
      const world = new World(rules);
      world.join("a", units({ cpus: 2 }));
      world.submit(group("a", 100));
      world.step();
      return world.scheduler.loadOf(1);
    });
    expect(loads[1]).toEqual(loads[0]);
  });

  it("row 001-36: no runs over any queues and agents exceed what there is, restarts and ranks included; all end", () => {
    const amount = fc.record({ cpus: fc.integer({ min: 0, max: 3 }), licence: fc.integer({ min: 0, max: 2 }) });
    const ranks = fc.option(fc.record({ count: fc.integer({ min: 2, max: 3 }), nodes: fc.constant(2) }), {
      freq: 4,
      nil: undefined,
    });
    const entry = fc.record({
      amount,
      ranks,
      count: fc.integer({ min: 1, max: 6 }),
      queue: fc.nat(3),
      alone: fc.nat(5).map((n) => n === 0),
    });
    const agent = fc.record({
      queue: fc.nat(2),
      extra: fc.nat(3),
      here: fc.boolean(),
      pilot: fc.integer({ min: 1, max: 2 }),
    });
    const action = fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: fc.constant("end" as const), nth: fc.nat() }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("run" as const), entries: fc.array(entry, { maxLength: 3 }) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("join" as const), agent }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
    );
    const capacity = fc.record({ cpus: fc.integer({ min: 9, max: 11 }), licence: fc.integer({ min: 6, max: 7 }) });
    fc.assert(
      fc.property(capacity, fc.array(action, { maxLength: 40 }), fc.boolean(), (has, actions, newestFirst) => {
        const licences: AccountRule = {
          cluster: "local",
          capacity: units({ licence: has.licence }),
          covers: () => true,
        };
        const world = new World([machine({ cpus: has.cpus }), licences]);
        const join = (queue: string, extra: number, here: boolean, pilot: number): void => {
          const offer = units({ cpus: has.cpus + extra, licence: has.licence });
          world.join(queue, offer, { pilot, host: here ? "here" : "there" });
        };
        // two agents of one pilot for each queue, so that everything can run somewhere
        for (const [i, queue] of QUEUES.entries()) for (let n = 0; n < 2; n += 1) join(queue, 0, true, 10 + i);
        for (const each of actions) {
          if (each.kind === "end") world.end(each.nth);
          else if (each.kind === "restart") world.restart();
          else if (each.kind === "join")
            join(QUEUES[each.agent.queue]!, each.agent.extra, each.agent.here, each.agent.pilot);
          else
            for (const { amount: asked, ranks: together, count, queue, alone } of each.entries)
              world.submit(
                group("t", count, {
                  // what is not here makes it run alone
                  resources: units(alone ? { ...asked, cpus: 1, elsewhere: 1 } : asked),
                  ...(alone ? { redirect: { here: units(has) } } : {}),
                  ...(queue < 3 ? { queue: QUEUES[queue]! } : {}),
                  ...(together === undefined ? {} : { ranks: { ...together, by: "agents" } }),
                }),
              );
          world.step(newestFirst);
        }
        do world.step(newestFirst);
        while (world.end(0));
        expect(world.scheduler.waiting()).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});
