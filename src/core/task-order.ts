import type { Row } from "./ids.ts";
import { sortedPlaces } from "./radix.ts";
import { type Run, groupOf } from "./run.ts";
import { type TaskFilter, type TaskSort, durationOf, matches } from "./task-query.ts";

/** All tasks that match, in order, for whoever jumps from page to page: made once, in turns, 4 bytes a task. */

export interface TaskOrder {
  readonly total: number;
  /** Some of them from a place on. */
  page(offset: number, limit: number): Row[];
}

/** Rows looked at in one turn: a few milliseconds at most. */
const PER_TURN = 50_000;
/** What has not begun comes last, whichever way. */
const NOT_BEGUN = 0xffff_ffff;

const isNarrow = (filter: TaskFilter): boolean => Object.values(filter).some((each) => each !== undefined);

/** Without a filter the order is the numbers themselves: nothing is made. */
const plainOrder = (total: number, reverse: boolean): TaskOrder => ({
  total,
  page: (offset, limit) =>
    Array.from({ length: Math.max(0, Math.min(limit, total - offset)) }, (_, i) =>
      reverse ? total - 1 - offset - i : offset + i,
    ),
});

function* rowsThatMatch(run: Run, filter: TaskFilter, now: number): Generator<undefined, Uint32Array> {
  const rows = new Uint32Array(run.total);
  let count = 0;
  let group = run.groups[0];
  for (let row = 0; row < run.total; row += 1) {
    if (row % PER_TURN === PER_TURN - 1) yield;
    if (group === undefined || row >= group.first + group.count) group = groupOf(run.groups, row);
    if (matches(run, row, group, filter, now)) rows[count++] = row;
  }
  return rows.slice(0, count);
}

export function* orderTasks(
  run: Run,
  { sort, reverse, filter }: { readonly sort: TaskSort; readonly reverse: boolean; readonly filter: TaskFilter },
  now: number,
): Generator<undefined, TaskOrder> {
  if (sort === "index" && !isNarrow(filter)) return plainOrder(run.total, reverse);
  const rows = yield* rowsThatMatch(run, filter, now);
  if (sort === "index") {
    if (reverse) rows.reverse();
    return { total: rows.length, page: (offset, limit) => [...rows.subarray(offset, offset + limit)] };
  }
  const keys = new Uint32Array(rows.length);
  for (let i = 0; i < rows.length; i += 1) {
    if (i % PER_TURN === PER_TURN - 1) yield;
    const ms = durationOf(run, rows[i]!, now);
    const least = Math.min(NOT_BEGUN - 1, Math.round(ms));
    keys[i] = ms < 0 ? NOT_BEGUN : reverse ? NOT_BEGUN - 1 - least : least;
  }
  const places = yield* sortedPlaces(keys);
  return {
    total: rows.length,
    page: (offset, limit) => Array.from(places.subarray(offset, offset + limit), (place) => rows[place]!),
  };
}
