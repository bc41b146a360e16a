import { Lost } from "../../../src/core/output-lost.ts";
import { apply } from "../../../src/core/apply.ts";
import { EventRefused, check } from "../../../src/core/check.ts";
import { Ending, type Event, NO_CODE } from "../../../src/core/events.ts";
import { decideLosses } from "../../../src/core/losses.ts";
import { decideMemory } from "../../../src/core/memory-retry.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import type { Run } from "../../../src/core/run.ts";
import type { Dependency, GroupSpec, RunSpec } from "../../../src/core/spec.ts";
import { type Effects, NO_EFFECTS, type State, createState } from "../../../src/core/state.ts";
import { Task } from "../../../src/core/states.ts";
import { peek } from "../../../src/core/table.ts";
import { type ElementState, type TaskJob, uncarried } from "../../../src/core/task-job.ts";

/** A small driver of the core: what server and agents would do, without either. */

export const group = (name: string, count: number, more: Partial<GroupSpec> = {}): GroupSpec => ({
  name,
  command: ["true"],
  items: count === 1 ? { kind: "one" } : { kind: "range", from: 0, step: 1, count },
  after: [],
  resources: { cpus: FRACTION },
  priority: 0,
  retries: 0,
  retryDelay: 0,
  executor: "process",
  ...more,
});

export const after = (...dependencies: (number | [number, "ok" | "any" | "failed"])[]): readonly Dependency[] =>
  dependencies.map((each) => (typeof each === "number" ? { group: each, on: "ok" } : { group: each[0], on: each[1] }));

export const spec = (groups: readonly GroupSpec[], more: Partial<RunSpec> = {}): RunSpec => ({
  name: "test",
  cwd: "/",
  env: {},
  groups,
  numbering: { start: 0, step: 1 },
  ...more,
});

export interface Driver {
  readonly state: State;
  readonly events: Event[];
  /** Rows that may be placed, according to the effects. */
  readonly ready: Map<number, Set<number>>;
  readonly stops: { agent: number; run: number; row: number }[];
  /** As the server does: decides what is lost once too often before it applies the event. */
  send(event: Event): void;
  /** Another server takes over, with another limit on losses. */
  restart(losses: number): void;
  /** `skipped`: ranges of rows that an earlier run has done; `items`: those of its lists, by group. */
  submit(
    spec: RunSpec,
    more?: { skipped?: readonly number[]; items?: ReadonlyMap<number, readonly string[]>; json?: boolean },
  ): Run;
  join(taskJob?: { id: number; element: number }): number;
  /** Asks for a job that carries these. */
  request(run: number, rows: readonly number[]): TaskJob;
  /** Something happened to elements of a job. */
  change(job: TaskJob, elements: readonly number[], to: ElementState): void;
  /** Others: agents that run some of its ranks. */
  assign(agent: number, run: number, row: number, others?: readonly number[]): void;
  /** Hands a task ahead to an agent that has what it waits for. */
  ahead(agent: number, run: number, row: number): void;
  /** From the row with this index on; those before it ended well. */
  end(agent: number, run: number, rows: readonly number[], code: number, ending?: number, from?: number): void;
  stateOf(run: Run, row: number): number;
}

/** Those that have not ended are listed apart, each as the object it is. */
export const liveAreExact = ({ runs, live }: Pick<State, "runs" | "live">): void => {
  for (const run of live)
    if (run.finished > 0 || runs.get(run.id) !== run) throw new Error(`run ${run.id} is not live`);
  for (const run of runs.values()) if (run.finished === 0 && !live.has(run)) throw new Error(`run ${run.id} is live`);
};

/** No test may make core refuse a move. */
export const noRefusals = ({ refused }: Pick<State, "refused">): void => {
  if (refused.count > 0) throw new Error(`moves of states were refused: ${refused.count}, the last of ${refused.last}`);
};

/**
 * `format1`: the limit by which Slipway of that format judged losses, without recording what it decided. `told`:
 * further effects that a test wants to hear of.
 */
export const createDriver = ({ format1, told = {} }: { format1?: number; told?: Partial<Effects> } = {}): Driver => {
  const state = createState(format1);
  let undecided = format1 !== undefined;
  let limit = 5;
  let epoch = 0;
  const events: Event[] = [];
  const ready = new Map<number, Set<number>>();
  const stops: { agent: number; run: number; row: number }[] = [];
  const seqs = new Map<number, number>();
  let at = 1000;
  const readyOf = (run: number): Set<number> => {
    let set = ready.get(run);
    if (set === undefined) ready.set(run, (set = new Set()));
    return set;
  };
  const effects: Effects = {
    ...NO_EFFECTS,
    // as the server does: what a job carries waits there
    ready: (run, from, count) => {
      told.ready?.(run, from, count);
      for (const part of uncarried(state, run.id, from, count))
        for (let row = part.from; row < part.from + part.count; row += 1) readyOf(run.id).add(row);
    },
    delayed: (run, row) => readyOf(run.id).add(row),
    stop: (agent, run, row) => stops.push({ agent, run: run.id, row }),
    attemptOver: (run, row, attempt) => told.attemptOver?.(run, row, attempt),
    ended: (run, row) => {
      readyOf(run.id).delete(row);
      told.ended?.(run, row);
    },
    skipped: (run, from, count) => {
      for (let row = from; row < from + count; row += 1) readyOf(run.id).delete(row);
    },
    canceled: (run, from, count) => {
      for (let row = from; row < from + count; row += 1) readyOf(run.id).delete(row);
    },
  };
  const send = (given: Event): void => {
    const problem = check(state, given);
    if (problem !== undefined) throw new EventRefused(given.type, problem);
    // what a node can give is a setting too: it changes with each start
    const event = undecided
      ? given
      : decideMemory(state, decideLosses(state, given, limit), { largest: () => 10 * limit });
    events.push(event);
    apply(state, event, effects);
    noRefusals(state);
    liveAreExact(state);
  };
  return {
    state,
    events,
    ready,
    stops,
    send,
    restart: (losses) => {
      limit = losses;
      undecided = false;
      epoch += 1;
      send({ type: "server.started", at: (at += 1), epoch, host: "h", pid: 1, version: "1" });
      if (state.undecided > 0) send({ type: "losses.judged", at: (at += 1), limit: state.lossLimit });
    },
    submit: (runSpec, { skipped, items = new Map(), json = false } = {}) => {
      const run = state.nextRun;
      send({ type: "run.opened", at: (at += 1), run, uuid: `u${run}`, spec: runSpec });
      for (const [index, list] of items) send({ type: "run.items", run, group: index, json, items: list });
      send({ type: "run.committed", at: (at += 1), run, ...(skipped === undefined ? {} : { skipped }) });
      return state.runs.get(run)!;
    },
    request: (run, rows) => {
      for (const row of rows) readyOf(run).delete(row);
      const job = state.nextTaskJob;
      send({ type: "task-job.requested", at: (at += 1), job, cluster: "c", queue: "q", jobName: `j${job}`, run, rows });
      return state.taskJobs.get(job)!;
    },
    change: (job, elements, to) =>
      send({
        type: "task-job.changed",
        at: (at += 1),
        job: job.id,
        state: to,
        ...(elements.length === job.elements.length && at % 2 === 0 ? {} : { elements }),
        ...(to === "queued" ? { nativeId: `${at}`, nativeIds: job.elements.map((_, i) => `${at}_${i}`) } : {}),
        ...(to === "ended" ? { reason: "over" } : {}),
        ...(at % 3 === 0 ? { takenBack: true } : {}),
      }),
    join: (taskJob) => {
      const agent = state.nextAgent;
      send({
        type: "agent.joined",
        at: (at += 1),
        agent,
        uuid: `a${agent}`,
        pilot: taskJob === undefined ? 1 : 0,
        ...(taskJob === undefined ? {} : { taskJob }),
        host: "h",
        version: "1",
        resources: {},
        output: "",
        seq: 0,
      });
      return agent;
    },
    assign: (agent, run, row, others = []) => {
      readyOf(run).delete(row);
      const members = [agent, ...others];
      send({
        type: "tasks.assigned",
        at: (at += 1),
        agent,
        parts: [{ run, ranges: [row, 1] }],
        ...(others.length === 0 ? {} : { gang: { agents: members, ranks: members.map(() => 2) } }),
      });
    },
    ahead: (agent, run, row) =>
      send({ type: "tasks.assigned", at: (at += 1), agent, parts: [], ahead: [{ run, ranges: [row, 1] }] }),
    end: (agent, run, rows, code, ending = code < 0 ? Ending.SIGNAL : Ending.EXIT, from = 0) => {
      const seq = (seqs.get(agent) ?? 0) + 1;
      seqs.set(agent, seq);
      const n = rows.length;
      const table = state.runs.get(run)!.table;
      send({
        type: "tasks.ended",
        at: (at += 1),
        agent,
        seq,
        parts: [
          {
            run,
            rows: Uint32Array.from(rows),
            attempt: Uint16Array.from(rows, (row) => peek(table, row)?.attempt[row % table.pageRows] ?? 0),
            ending: new Uint8Array(n).fill(ending, from),
            code: new Int16Array(n).fill(ending >= Ending.CANCELED ? NO_CODE : code, from),
            started: new Float64Array(n).fill(at),
            finished: new Float64Array(n).fill(at + 1),
            outAt: new Float64Array(n).fill(-1),
            outBytes: new Float64Array(n).fill(at % 5),
            errBytes: new Float64Array(n),
            details: [],
            ...(at % 2 === 0 ? { peak: Uint32Array.from(rows, (row) => at + row), peakBy: 1 + (at % 3) } : {}),
            ...(at % 3 === 0 ? { cpu: Uint32Array.from(rows, (row) => at + row), system: at % 5 } : {}),
            ...(at % 6 === 0 ? { read: 3, written: Uint32Array.from(rows, (row) => row % 2) } : {}),
            lost: at % 3 === 0 ? rows.map((row, i) => [i, row, at, Lost.NO_ROOM] as const) : [],
          },
        ],
      });
    },
    stateOf: (run, row) => {
      const page = peek(run.table, row);
      return page === undefined ? run.table.baseState(row) : page.state[row % run.table.pageRows]!;
    },
  };
};

/** Runs everything to its end on one agent; `outcome` decides each attempt's exit code. */
export const runToEnd = (driver: Driver, outcome: (run: number, row: number) => number): void => {
  const agent = driver.join();
  for (let turn = 0; turn < 100_000; turn += 1) {
    const next = [...driver.ready].flatMap(([run, rows]) => [...rows].map((row) => [run, row] as const))[0];
    if (next === undefined) return;
    driver.assign(agent, ...next);
    driver.end(agent, next[0], [next[1]], outcome(...next));
  }
  throw new Error("the runs do not end");
};

export const countOf = (run: Run, state: number): number => run.counts[state]!;
export { Task };
