import { KILLED_FOR_MEMORY } from "../core/memory-retry.ts";
import { amountOf } from "../core/resources.ts";
import { type Attempt, type Group, type Run, groupOf, isFinishedRun, shapeOfRow } from "../core/run.ts";
import { Task } from "../core/states.ts";
import { peek, stateOf } from "../core/table.ts";
import { LOOK_EVERY, type Knowledge, type MemoryOfNodes, learnedRequests, waitingMemory } from "../learned/auto.ts";
import type { FirstTasks } from "../learned/first-tasks.ts";
import { startTimer } from "../long-timer.ts";
import type { HoldingScheduler } from "../scheduler/held-back.ts";
import type { Engine } from "./engine.ts";
import type { Row } from "../core/ids.ts";

/** What tasks ask for follows what is learned. A change is journaled before any task is placed with it. */
export interface AutoRequests {
  /** A run came in, or came back. */
  begin(run: Run): void;
  /** Call this when the end of a task has been learned. */
  taskEnded(run: Run, row: Row): void;
  /** Tasks from this one on, of one group, need not run: more of the others may go. */
  tasksSkipped(run: Run, from: Row): void;
  /** An attempt is over whose task will run again. */
  attemptOver(run: Run, row: Row, attempt: Attempt): void;
}

export interface AutoRequestsOptions {
  readonly engine: Engine;
  readonly known: Knowledge;
  readonly nodes: MemoryOfNodes;
  readonly first: FirstTasks;
  /** The engine's. */
  readonly scheduler: HoldingScheduler;
  /** How long the first tasks of a group may say nothing while others wait for them. */
  readonly patienceMs: (group: Group) => number;
}

/** Since the last look tasks that ended; since the amount changed ends and kills with as much as those ask for that wait. */
interface Since {
  ended: number;
  well: number;
  killed: number;
  planned: boolean;
  /** While others wait for the first tasks. */
  patience?: ReturnType<typeof startTimer> | undefined;
}

/** Whether a task ended, other than for memory, with no more than those ask for that wait. */
const endedWithIt = (run: Run, group: Group, row: Row): boolean =>
  (stateOf(run.table, row) === Task.DONE || !group.memory.has(row)) &&
  amountOf(shapeOfRow(group, row).resources, "mem") <= waitingMemory(group);

export const createAutoRequests = (options: AutoRequestsOptions): AutoRequests => {
  const { engine, known, nodes, first, scheduler, patienceMs } = options;
  const groups = new WeakMap<Group, Since>();

  const sinceOf = (group: Group): Since => {
    let since = groups.get(group);
    if (since === undefined) groups.set(group, (since = { ended: 0, well: 0, killed: 0, planned: false }));
    return since;
  };

  const isLive = (run: Run): boolean => engine.state.runs.get(run.id) === run && !isFinishedRun(run);

  /** Whether an agent has had any of those that may go: without a pilot nobody can tell anything. */
  const hasBegun = (run: Run, group: Group): boolean => {
    const end = group.first + Math.min(group.count, first.mayGo(run, group));
    for (let row = group.first; row < end; row += 1)
      if ((peek(run.table, row)?.attempt[row % run.table.pageRows] ?? 0) > 0) return true;
    return false;
  };

  const beginPatience = (run: Run, group: Group): void => {
    const since = sinceOf(group);
    since.patience?.stop();
    const over = (): void => {
      since.patience = undefined;
      if (!isLive(run) || !scheduler.holds(group)) return;
      if (!hasBegun(run, group)) return beginPatience(run, group);
      first.open(group);
      release(run, group);
    };
    since.patience = startTimer(patienceMs(group), over);
  };

  const release = (run: Run, group: Group): void => {
    scheduler.release(run, group);
    engine.schedulePass();
    const since = sinceOf(group);
    if (scheduler.holds(group)) return;
    since.patience?.stop();
    since.patience = undefined;
  };

  const look = (run: Run, group: Group): void => {
    const since = sinceOf(group);
    since.ended = 0;
    if (isFinishedRun(run) || group.done + group.failed + group.canceled === group.count) return;
    first.heard(group, since.well, since.killed);
    const change = learnedRequests(known, nodes, run, group, since.killed);
    if (change?.mem !== undefined) since.well = since.killed = 0;
    // a change has all that waits queued anew, by what may go now
    if (change !== undefined) engine.commit({ type: "run.requests", at: engine.clock(), ...change });
    if (scheduler.holds(group)) release(run, group);
  };

  /** Not now: the event that it is about is still being applied. */
  const plan = (run: Run, group: Group): void => {
    const since = sinceOf(group);
    if (since.planned) return;
    since.planned = true;
    setImmediate(() => {
      since.planned = false;
      if (engine.state.runs.get(run.id) === run) look(run, group);
    });
  };

  scheduler.onHeld = beginPatience;
  return {
    begin: (run) => {
      for (const group of run.groups) if (group.spec.auto !== undefined) look(run, group);
    },
    taskEnded: (run, row) => {
      const group = groupOf(run.groups, row);
      if (group.spec.auto === undefined) return;
      const since = sinceOf(group);
      since.ended += 1;
      if (endedWithIt(run, group, row)) since.well += 1;
      const held = scheduler.holds(group);
      if (held) beginPatience(run, group);
      if (held || since.ended >= LOOK_EVERY) plan(run, group);
    },
    tasksSkipped: (run, from) => {
      const group = groupOf(run.groups, from);
      if (group.spec.auto !== undefined && scheduler.holds(group)) plan(run, group);
    },
    attemptOver: (run, row, { mem = 0, reason }) => {
      const group = groupOf(run.groups, row);
      if (group.spec.auto?.mem !== true || !reason.startsWith(KILLED_FOR_MEMORY)) return;
      if (scheduler.holds(group)) beginPatience(run, group);
      if (mem < waitingMemory(group)) return;
      sinceOf(group).killed += 1;
      plan(run, group);
    },
  };
};
