import { apply } from "../core/apply.ts";
import { EventRefused, check } from "../core/check.ts";
import { encodeEvent } from "../core/codec.ts";
import type { PackedColumns } from "../core/columns.ts";
import type { Event, RowRanges } from "../core/events.ts";
import type { Gang } from "../core/gangs.ts";
import { decideLosses } from "../core/losses.ts";
import { type MemoryAdvice, decideMemory } from "../core/memory-retry.ts";
import { amountOf } from "../core/resources.ts";
import { type Attempt, type Run, groupOf, shapeOfRow } from "../core/run.ts";
import { bringBackFor } from "../core/snapshot.ts";
import type { Effects, RunSummary, State } from "../core/state.ts";
import type { Assignment, Scheduler } from "../scheduler/scheduler.ts";
import type { Clock } from "./clock.ts";
import type { Journal } from "../journal/journal.ts";
import { createLookAgain } from "../look-again.ts";
import { createOutbox } from "./outbox.ts";
import { queueRows, rebuildQueues, requeueRun } from "./rebuild-queues.ts";
import { createRetryDelay } from "./retry-delays.ts";
import type { AgentId, Row } from "../core/ids.ts";

/**
 * The one writer of the state. Every change is an event: appended to the journal, applied in memory, and made known to
 * the outside only when it is on disk. Memory may run ahead of the disk; nobody outside ever does.
 */
export interface Engine {
  readonly state: State;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  /** Checks, appends and applies. Returns the record's number, for `afterDurable`. Throws before anything is written. */
  commit(event: Event, packed?: readonly PackedColumns[]): number;
  /** Runs, in order, when everything committed so far, or up to `lsn`, is on disk. */
  afterDurable(action: () => void, lsn?: number): void;
  whenDurable(lsn?: number): Promise<void>;
  /** Asks for a scheduling pass at the end of this turn of the loop. */
  schedulePass(): void;
  /**
   * Fills the queues from the state, once, after replay. Until then events change only the state: a task that comes
   * back meanwhile (from a spool, or from an agent that is faster than the start) is found there, and queued once.
   */
  rebuildQueues(): void;
  readonly listeners: EngineListeners;
}

/** Each is set once, by whoever puts the server together (wiring.ts). */
export interface EngineListeners {
  /** An agent was given tasks that could be placed `since` then, and some ahead; called when that is on disk. */
  assigned: (agent: AgentId, parts: readonly RowRanges[], ahead: readonly RowRanges[], since?: number) => void;
  /** The same while the disk works on it: not to be told, but something can be prepared. */
  assigning: (agent: AgentId, parts: readonly RowRanges[], ahead: readonly RowRanges[]) => void;
  stop: (agent: AgentId, run: Run, row: Row, attempt: number) => void;
  takeBack: (agent: AgentId, count: number) => void;
  /** What waits was looked at: some of it may become jobs of its own. */
  passed: () => void;
  /** Agents that have a part of it end that part. */
  gangOver: (gang: Gang) => void;
  /** Called as soon as it is true in memory; whoever tells the outside waits for the disk. */
  attemptOver: (run: Run, row: Row, attempt: Attempt) => void;
  taskEnded: (run: Run, row: Row) => void;
  tasksCanceled: (run: Run, from: number, count: number) => void;
  tasksSkipped: (run: Run, from: number, count: number) => void;
  runFinished: (run: Run) => void;
  committed: (event: Event, lsn: number) => void;
  /** Applying this event asked for forbidden moves (core/moves.ts): a fault of this server or of an earlier one. */
  moveRefused: (event: Event) => void;
  /** Whether new work may be placed now. */
  mayPlace: () => boolean;
}

const nothing = (): void => undefined;

const NOBODY_LISTENS: EngineListeners = {
  assigned: nothing,
  assigning: nothing,
  stop: nothing,
  takeBack: nothing,
  passed: nothing,
  gangOver: nothing,
  attemptOver: nothing,
  taskEnded: nothing,
  tasksCanceled: nothing,
  tasksSkipped: nothing,
  runFinished: nothing,
  committed: nothing,
  moveRefused: nothing,
  mayPlace: () => true,
};

export interface EngineOptions {
  /** How often a task may be lost before it is given up: applied when it is lost, never to the past. */
  readonly losses?: number;
  /** What a task gets that was killed for memory; without it, at most what its own node has. */
  readonly memory?: MemoryAdvice;
  /** Reads a run from the archive. */
  readonly restore?: (summary: RunSummary) => Run;
}

const DEFAULT_LOSSES = 5;

const ownNode = ({ agents }: State): MemoryAdvice => ({
  largest: (_spec, agent) => amountOf(agents.get(agent)?.resources ?? {}, "mem"),
});

const assignedEvent = (at: number, { agent, parts, ahead, gang }: Assignment): Event => {
  const more = { ...(ahead === undefined ? {} : { ahead }), ...(gang === undefined ? {} : { gang }) };
  return { type: "tasks.assigned", at, agent, parts, ...more };
};

/** A turn after the decision, when the disk has its work; nothing if it was faster. */
const prepare = (listeners: EngineListeners, assignments: readonly Assignment[], journal: Journal): void => {
  if (journal.durable === journal.appended) return;
  for (const { agent, parts, ahead } of assignments) listeners.assigning(agent, parts, ahead ?? []);
};

/** Its agents have their slots back. */
const releaseGang = ({ runs }: State, scheduler: Scheduler, gang: Gang): void => {
  const { groups } = runs.get(gang.run)!;
  scheduler.leftGang(shapeOfRow(groupOf(groups, gang.row), gang.row), gang);
};

export const createEngine = (
  state: State,
  scheduler: Scheduler,
  journal: Journal,
  clock: Clock,
  options: EngineOptions = {},
): Engine => {
  const { losses = DEFAULT_LOSSES, restore, memory = ownNode(state) } = options;
  const { afterDurable } = createOutbox(journal);
  /** Whether a pass is due, and when something changed that it will look at. */
  let [passPlanned, changedAt] = [false, 0];
  /** Whether the scheduler knows everything that the state does. */
  let filled = false;
  /** For agents that were left alone with their backlog. */
  const lookAgain = createLookAgain(() => schedulePass());
  const listeners: EngineListeners = { ...NOBODY_LISTENS };
  const delay = createRetryDelay(clock, (run, row) => {
    scheduler.ready(run, row, 1);
    schedulePass();
  });

  /** Tells the scheduler of a change, and has it look. */
  const whenFilled = (tell: () => void): void => {
    if (!filled) return;
    tell();
    schedulePass();
  };

  const effects: Effects = {
    ready: (run, from, count) => whenFilled(() => queueRows(state, scheduler, run, from, count)),
    unqueue: (run) => {
      if (filled) scheduler.unqueue(run);
    },
    requeue: (run) => whenFilled(() => requeueRun(state, run, scheduler, clock, delay)),
    delayed: (run, row, until) => {
      if (filled) delay(run, row, until);
    },
    arrived: (run, row, agent) => whenFilled(() => scheduler.arrived(run, row, agent)),
    left: (run, row, agent) => {
      if (!filled) return;
      scheduler.left(run, row, agent);
      schedulePass();
    },
    gangOver: (gang) => {
      whenFilled(() => releaseGang(state, scheduler, gang));
      afterDurable(() => listeners.gangOver(gang));
    },
    stop: (agent, run, row, attempt) => afterDurable(() => listeners.stop(agent, run, row, attempt)),
    attemptOver: (run, row, attempt) => listeners.attemptOver(run, row, attempt),
    ended: (run, row) => listeners.taskEnded(run, row),
    canceled: (run, from, count) => {
      scheduler.canceled(run, from, count);
      listeners.tasksCanceled(run, from, count);
    },
    skipped: (run, from, count) => listeners.tasksSkipped(run, from, count),
    finished: (run) => {
      scheduler.dropRun(run);
      listeners.runFinished(run);
    },
  };

  const commit = (given: Event, packed?: readonly PackedColumns[]): number => {
    const problem = check(state, given);
    if (problem !== undefined) throw new EventRefused(given.type, problem);
    const event = decideMemory(state, decideLosses(state, given, losses), memory);
    if (restore !== undefined) bringBackFor(state, event, { restore });
    const { type, payload } = encodeEvent(event, packed);
    const lsn = journal.append(type, payload);
    const refused = state.refused.count;
    apply(state, event, effects);
    if (state.refused.count > refused) listeners.moveRefused(event);
    listeners.committed(event, lsn);
    return lsn;
  };

  const pass = (): void => {
    if (!passPlanned) return;
    passPlanned = false;
    if (!filled || !listeners.mayPlace()) return;
    const [at, since] = [clock(), changedAt];
    const assignments = scheduler.pass(at);
    for (const each of assignments) {
      const lsn = commit(assignedEvent(at, each));
      afterDurable(() => listeners.assigned(each.agent, each.parts, each.ahead ?? [], since), lsn);
    }
    if (assignments.length > 0) setImmediate(prepare, listeners, assignments, journal);
    listeners.passed();
    const { asks, againMs } = scheduler.rebalance(at);
    for (const { agent, count } of asks) listeners.takeBack(agent, count);
    if (scheduler.isUnfolding()) schedulePass();
    lookAgain(againMs ?? Infinity);
  };

  /** At the end of this turn, so that all messages that arrive in it share a pass. */
  const schedulePass = (): void => {
    if (passPlanned) return;
    passPlanned = true;
    changedAt = clock();
    setImmediate(pass);
  };
  // with what made them possible: one wait for the disk, not two
  journal.beforeCommit(pass);

  return {
    state,
    scheduler,
    clock,
    listeners,
    commit,
    afterDurable,
    whenDurable: (lsn = journal.appended) => journal.whenDurable(lsn),
    schedulePass,
    rebuildQueues: () => {
      if (filled) return;
      filled = true;
      rebuildQueues(state, scheduler, clock, delay);
      schedulePass();
    },
  };
};
