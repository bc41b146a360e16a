import { forEachHeld } from "../core/held.ts";
import { type Group, type Run, groupOf, isFinishedRun, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { Task } from "../core/states.ts";
import { isReady, peek } from "../core/table.ts";
import { uncarried } from "../core/task-job.ts";
import type { Row } from "../core/ids.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Clock } from "./clock.ts";
import type { RetryDelay } from "./retry-delays.ts";

/** Rows that may be placed, without those that wait in a manager as jobs. */
export const queueRows = (state: State, scheduler: Scheduler, run: Run, from: Row, count: number): void => {
  // most runs have none: tasks of a graph come here one by one
  if (!state.carried.has(run.id)) return scheduler.ready(run, from, count);
  for (const part of uncarried(state, run.id, from, count)) scheduler.ready(run, part.from, part.count);
};

/** After replay: tells the scheduler everything the state knows about what waits and what agents have. */

const rebuildGroup = (
  state: State,
  scheduler: Scheduler,
  run: Run,
  group: Group,
  clock: Clock,
  delay: RetryDelay,
): void => {
  const { table } = run;
  const carried = state.carried.get(run.id);
  let from = -1;
  const end = group.first + group.count;
  for (let row = group.first; row <= end; row += 1) {
    const page = row < end ? peek(table, row) : undefined;
    const slot = row % table.pageRows;
    let ready =
      row < end && (page === undefined ? group.base === Task.PENDING : isReady(page.state[slot]!, page.agent[slot]!));
    // it waits in a manager
    if (ready && carried?.has(row) === true) ready = false;
    if (ready && page !== undefined && page.finished[slot]! > 0 && group.spec.retryDelay > 0) {
      // it waits out the delay of a retry: `finished` is when the delay began
      const wait = group.spec.retryDelay * 1000;
      // never longer than the delay itself: the wall clock may have been set back between two servers (rule 10)
      delay(run, row, Math.min(page.finished[slot]!, clock()) + wait);
      ready = false;
    }
    if (ready && from < 0) from = row;
    if (!ready && from >= 0) {
      scheduler.ready(run, from, row - from);
      from = -1;
    }
  }
};

/** Everything of a run that waits, after it was taken out of the queues. */
export const requeueRun = (state: State, run: Run, scheduler: Scheduler, clock: Clock, delay: RetryDelay): void => {
  if (isFinishedRun(run)) return;
  for (const group of run.groups) rebuildGroup(state, scheduler, run, group, clock, delay);
};

export const rebuildQueues = (state: State, scheduler: Scheduler, clock: Clock, delay: RetryDelay): void => {
  const living = new Set([...state.agents.values()].filter((agent) => agent.ended === 0).map((agent) => agent.id));
  for (const run of state.live) {
    requeueRun(state, run, scheduler, clock, delay);
    forEachHeld(run, living, (row, page, slot) => scheduler.restore(run, row, page.agent[slot]!));
  }
  for (const gang of state.gangs.values()) {
    const run = state.runs.get(gang.run);
    if (run !== undefined) scheduler.restoreGang(shapeOfRow(groupOf(run.groups, gang.row), gang.row), gang);
  }
};
