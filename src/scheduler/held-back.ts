import { type Group, type Run, groupOf, waitingShapeOf } from "../core/run.ts";
import { Task } from "../core/states.ts";
import { isReady, peek } from "../core/table.ts";
import type { Row } from "../core/ids.ts";
import type { Scheduler } from "./scheduler.ts";
import type { WaitingShape } from "./tallies.ts";

/**
 * A scheduler that gets only the first tasks of some groups, until somebody says that more of them may go. Only tasks that
 * have never been with an agent are held back; what is held follows from the state, so a restart loses nothing. Whoever
 * asks what waits (fleets, people) is told of all.
 */
export interface HoldingScheduler extends Scheduler {
  /** More of a group may go than before: places what that lets through. */
  release(run: Run, group: Group): void;
  /** Whether some of a group are held back. */
  holds(group: Group): boolean;
  /** Called when the first of a group is held back. */
  onHeld: (run: Run, group: Group) => void;
}

/** How many tasks of a group may go, from its first; Infinity if nothing holds them back. */
export type MayGo = (run: Run, group: Group) => number;

interface Held {
  readonly run: Run;
  /** From this row on, tasks that never began are held. */
  from: Row;
}

const isNew = (run: Run, row: Row): boolean => {
  const page = peek(run.table, row);
  return page === undefined || page.attempt[row % run.table.pageRows] === 0;
};

/** Calls `found` for each range of rows for which this holds. */
const ranges = (from: Row, end: Row, holds: (row: Row) => boolean, found: (from: Row, count: number) => void): void => {
  let since = -1;
  for (let row = from; row <= end; row += 1) {
    const is = row < end && holds(row);
    if (is && since < 0) since = row;
    if (is || since < 0) continue;
    found(since, row - since);
    since = -1;
  }
};

export const holdBack = (scheduler: Scheduler, mayGo: MayGo): HoldingScheduler => {
  const held = new Map<Group, Held>();
  const endOf = (group: Group): Row => group.first + group.count;

  const readyPart = (run: Run, group: Group, from: Row, end: Row): void => {
    const free = Math.min(end, Math.max(from, group.first + mayGo(run, group)));
    if (free > from) scheduler.ready(run, from, free - from);
    if (free === end) return;
    const known = held.get(group);
    if (known === undefined || free < known.from) held.set(group, { run, from: free });
    if (known === undefined) holding.onHeld(run, group);
    ranges(
      free,
      end,
      (row) => !isNew(run, row),
      (row, count) => scheduler.ready(run, row, count),
    );
  };

  const isWaiting = (run: Run, row: Row): boolean => {
    const page = peek(run.table, row);
    const slot = row % run.table.pageRows;
    if (page === undefined) return groupOf(run.groups, row).base === Task.PENDING;
    return page.attempt[slot] === 0 && isReady(page.state[slot]!, page.agent[slot]!);
  };

  const letGo = (group: Group, to: Row): void => {
    const { run, from } = held.get(group)!;
    if (to >= endOf(group)) held.delete(group);
    else held.set(group, { run, from: to });
    ranges(
      from,
      Math.min(to, endOf(group)),
      (row) => isWaiting(run, row),
      (row, count) => scheduler.ready(run, row, count),
    );
  };

  const forget = (run: Run): void => {
    if (held.size > 0) for (const group of run.groups) held.delete(group);
  };

  /** Where tasks become ready one by one, many are not yet. */
  const countWaiting = (run: Run, from: Row, end: Row): number => {
    let waiting = 0;
    for (let row = from; row < end; row += 1) if (isWaiting(run, row)) waiting += 1;
    return waiting;
  };

  /** How many wait behind the first ones; those that were cancelled meanwhile are few. */
  const counts = (): WaitingShape[] =>
    [...held].map(([group, { run, from }]) => {
      const waiting = group.links.length === 0 ? endOf(group) - from : countWaiting(run, from, endOf(group));
      return { shape: waitingShapeOf(group), waiting, sample: { tasks: 0, knownMs: 0, unknown: 0 } };
    });

  const holding: HoldingScheduler = {
    ...scheduler,
    onHeld: () => undefined,
    holds: (group) => held.has(group),
    ready: (run, from, count) => {
      for (let row = from; row < from + count;) {
        const group = groupOf(run.groups, row);
        const end = Math.min(from + count, endOf(group));
        readyPart(run, group, row, end);
        row = end;
      }
    },
    release: (run, group) => {
      const to = group.first + mayGo(run, group);
      if (to > (held.get(group)?.from ?? Infinity)) letGo(group, to);
    },
    isHeld: (run, row) => row >= (held.get(groupOf(run.groups, row))?.from ?? Infinity) && isWaiting(run, row),
    unqueue: (run) => {
      forget(run);
      scheduler.unqueue(run);
    },
    dropRun: (run) => {
      forget(run);
      scheduler.dropRun(run);
    },
    // tasks that are jobs of their own need no pilots
    demand: (nodes) => [...scheduler.demand(nodes), ...counts().filter(({ shape }) => shape.job === undefined)],
    waiting: () => counts().reduce((sum, { waiting }) => sum + waiting, scheduler.waiting()),
    withdraw: (isWanted) => {
      for (const group of held.keys()) letGo(group, Infinity);
      return scheduler.withdraw(isWanted);
    },
  };
  return holding;
};
