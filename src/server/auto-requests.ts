import { KILLED_FOR_MEMORY } from "../core/memory-retry.ts";
import { type Attempt, type Group, type Run, groupOf, isFinishedRun } from "../core/run.ts";
import { LOOK_EVERY, type Knowledge, type MemoryOfNodes, learnedRequests, waitingMemory } from "../learned/auto.ts";
import type { Engine } from "./engine.ts";
import type { Row } from "../core/ids.ts";

/** What tasks ask for follows what is learned. A change is journaled before any task is placed with it. */
export interface AutoRequests {
  /** A run came in, or came back. */
  begin(run: Run): void;
  /** Call this when the end of a task has been learned. */
  taskEnded(run: Run, row: Row): void;
  /** An attempt is over whose task will run again. */
  attemptOver(run: Run, row: Row, attempt: Attempt): void;
}

/** Since the last look: tasks that ended, and attempts killed with as much as those ask for that wait. */
interface Since {
  ended: number;
  killed: number;
  planned: boolean;
}

export const createAutoRequests = (engine: Engine, known: Knowledge, nodes: MemoryOfNodes): AutoRequests => {
  const groups = new WeakMap<Group, Since>();

  const sinceOf = (group: Group): Since => {
    let since = groups.get(group);
    if (since === undefined) groups.set(group, (since = { ended: 0, killed: 0, planned: false }));
    return since;
  };

  const look = (run: Run, group: Group): void => {
    const since = sinceOf(group);
    since.ended = 0;
    if (isFinishedRun(run) || group.done + group.failed + group.canceled === group.count) return;
    const change = learnedRequests(known, nodes, run, group, since.killed);
    if (change === undefined) return;
    since.killed = 0;
    engine.commit({ type: "run.requests", at: engine.clock(), ...change });
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

  return {
    begin: (run) => {
      for (const group of run.groups) if (group.spec.auto !== undefined) look(run, group);
    },
    taskEnded: (run, row) => {
      const group = groupOf(run.groups, row);
      if (group.spec.auto === undefined) return;
      const since = sinceOf(group);
      since.ended += 1;
      if (since.ended >= LOOK_EVERY) plan(run, group);
    },
    attemptOver: (run, row, { mem = 0, reason }) => {
      const group = groupOf(run.groups, row);
      if (group.spec.auto?.mem !== true || !reason.startsWith(KILLED_FOR_MEMORY)) return;
      if (mem < waitingMemory(group)) return;
      sinceOf(group).killed += 1;
      plan(run, group);
    },
  };
};
