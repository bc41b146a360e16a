import { apply } from "../../src/core/apply.ts";
import { markStarted } from "../../src/core/attempts.ts";
import { Ending, type Event } from "../../src/core/events.ts";
import { FRACTION, type Resources } from "../../src/core/resources.ts";
import { type Run, groupOf } from "../../src/core/run.ts";
import type { RunSpec } from "../../src/core/spec.ts";
import { type Effects, NO_EFFECTS, createState } from "../../src/core/state.ts";
import type { Expected } from "../../src/learned/expected.ts";
import { DEFAULT_PREFETCH } from "../../src/scheduler/capacity.ts";
import { createPressureOrder } from "../../src/scheduler/pressure-order.ts";
import { createScheduler } from "../../src/scheduler/scheduler.ts";

/**
 * Steps the shipped core and scheduler through one run in simulated time: agents with so many cores, tasks that take as
 * long as they are told. Nothing but the order of events decides anything.
 */
export interface Driven {
  readonly run: Run;
  /** Goes on until the run has ended, or until `stop` says so after an event. Returns the time then. */
  until(stop?: () => boolean): number;
  /** Core-milliseconds that have been done. */
  readonly done: number;
}

export interface DriveOptions {
  readonly spec: RunSpec;
  readonly agents: readonly { readonly cores: number }[];
  readonly expected: Expected;
  readonly durationOf: (run: Run, row: number) => number;
  readonly begun: number;
}

interface SimulatedAgent {
  readonly id: number;
  free: number;
  seq: number;
  readonly queue: number[];
}

export const coresOf = (run: Run, row: number): number =>
  (groupOf(run.groups, row).shape.resources["cpus"] ?? FRACTION) / FRACTION;

const joined = (agent: number, at: number, resources: Resources): Event => ({
  type: "agent.joined",
  at,
  agent,
  uuid: `a${agent}`,
  pilot: 0,
  host: "h",
  version: "1",
  resources,
  output: "",
  seq: 0,
});

const ended = ({ id, seq }: SimulatedAgent, run: number, row: number, from: number, at: number): Event => ({
  type: "tasks.ended",
  at,
  agent: id,
  seq,
  parts: [
    {
      run,
      rows: Uint32Array.of(row),
      attempt: Uint16Array.of(1),
      ending: Uint8Array.of(Ending.EXIT),
      code: Int16Array.of(0),
      started: Float64Array.of(from),
      finished: Float64Array.of(at),
      outAt: Float64Array.of(-1),
      outBytes: Float64Array.of(0),
      errBytes: Float64Array.of(0),
      details: [],
    },
  ],
});

export const drive = ({ spec, agents, expected, durationOf, begun }: DriveOptions): Driven => {
  const state = createState();
  const scheduler = createScheduler(DEFAULT_PREFETCH, "local", [], createPressureOrder(expected.ofGroup));
  expected.onChange = scheduler.expectationChanged;
  const effects: Effects = {
    ...NO_EFFECTS,
    ready: (run, from, count) => scheduler.ready(run, from, count),
    left: (run, row, agent) => scheduler.left(run, row, agent),
    ended: (run, row) => expected.taskEnded(run, row),
  };
  let now = begun;
  let done = 0;
  const fleet = new Map<number, SimulatedAgent>();
  for (const [i, { cores }] of agents.entries()) {
    const resources = { cpus: cores * FRACTION };
    const id = i + 1;
    apply(state, joined(id, now, resources), effects);
    scheduler.addAgent({ id, resources, cluster: "local", queue: "default", pilot: 1, endsAt: Infinity });
    fleet.set(id, { id, free: cores, seq: 0, queue: [] });
  }
  apply(state, { type: "run.opened", at: now, run: 1, uuid: "u", spec }, effects);
  apply(state, { type: "run.committed", at: now, run: 1 }, effects);
  const run = state.runs.get(1)!;
  expected.begin(run);

  /** What runs, by its end. */
  const ends: { at: number; agent: SimulatedAgent; row: number; from: number }[] = [];

  const startAll = (agent: SimulatedAgent): void => {
    for (let i = 0; i < agent.queue.length && agent.free > 0;) {
      if (agent.free < coresOf(run, agent.queue[i]!)) {
        i += 1;
        continue;
      }
      const [row] = agent.queue.splice(i, 1) as [number];
      agent.free -= coresOf(run, row);
      markStarted(state, run.id, row, now);
      const at = now + durationOf(run, row);
      let place = ends.length;
      while (place > 0 && ends[place - 1]!.at < at) place -= 1;
      ends.splice(place, 0, { at, agent, row, from: now });
    }
  };

  const handOut = (): void => {
    for (const { agent, parts } of scheduler.pass(now)) {
      apply(state, { type: "tasks.assigned", at: now, agent, parts }, effects);
      const taker = fleet.get(agent)!;
      for (const { ranges } of parts)
        for (let i = 0; i < ranges.length; i += 2)
          for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) taker.queue.push(row);
      startAll(taker);
    }
  };

  const place = (): void => {
    handOut();
    for (const { agent, count } of scheduler.rebalance(now).asks) {
      const giver = fleet.get(agent)!;
      const rows = giver.queue.splice(-Math.min(count, giver.queue.length));
      if (rows.length === 0) continue;
      const ranges = rows.flatMap((row) => [row, 1]);
      apply(state, { type: "tasks.returned", at: now, agent, parts: [{ run: run.id, ranges }] }, effects);
      handOut();
    }
  };

  const end = (): void => {
    const { at, agent, row, from } = ends.pop()!;
    now = at;
    agent.free += coresOf(run, row);
    agent.seq += 1;
    done += (at - from) * coresOf(run, row);
    apply(state, ended(agent, run.id, row, from, at), effects);
    startAll(agent);
    place();
  };

  place();
  return {
    run,
    get done() {
      return done;
    },
    until: (stop = () => false) => {
      while (ends.length > 0 && !stop()) end();
      if (ends.length === 0 && run.finished === 0) throw new Error("the simulated run stands still");
      return now;
    },
  };
};
