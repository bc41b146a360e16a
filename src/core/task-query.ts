import { attemptsOf } from "./past-attempts.ts";
import type { Row } from "./ids.ts";
import { type Group, type Run, groupOf } from "./run.ts";
import { peek, stateOf } from "./table.ts";

/** Which tasks of a run are asked for, and in which order. What is absent does not narrow. */
export interface TaskFilter {
  /** State codes. */
  readonly states?: ReadonlySet<number>;
  /** Names of groups. */
  readonly names?: ReadonlySet<string>;
  /** Agents that had the latest attempt: those of the hosts that were named. */
  readonly isAt?: (agent: number) => boolean;
  /** Milliseconds: the latest attempt took, or takes, at least this long. */
  readonly longer?: number;
  readonly exitCodes?: ReadonlySet<number>;
  /** Epoch milliseconds: the latest attempt ended then or later. */
  readonly endedSince?: number;
  /** Only those with an attempt that was lost. */
  readonly lost?: boolean;
}

export type TaskSort = "index" | "duration";

export interface TaskQuery extends TaskFilter {
  readonly sort: TaskSort;
  readonly reverse: boolean;
  readonly limit: number;
  /** Where the page before ended. */
  readonly after?: TaskCursor | undefined;
}

/** The last row of a page, and what it was sorted by. */
export interface TaskCursor {
  readonly row: Row;
  readonly key: number;
}

export interface TaskPage {
  readonly rows: readonly Row[];
  /** Undefined on the last page. */
  readonly next: TaskCursor | undefined;
}

/** How long the latest attempt took, or takes up to `now`; -1 before its start. */
export const durationOf = (run: Run, row: Row, now: number): number => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  const started = page?.started[slot] ?? 0;
  if (page === undefined || started === 0) return -1;
  const finished = page.finished[slot]!;
  return Math.max(0, (finished > 0 ? finished : Math.max(now, started)) - started);
};

/** Whether a row is asked for. */
export const matches = (run: Run, row: Row, group: Group, filter: TaskFilter, now: number): boolean => {
  const { states, names, isAt, longer, exitCodes, endedSince, lost } = filter;
  if (states !== undefined && !states.has(stateOf(run.table, row))) return false;
  if (names !== undefined && !names.has(group.spec.name)) return false;
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  if (isAt !== undefined && (page === undefined || page.agent[slot] === 0 || !isAt(page.agent[slot]!))) return false;
  if (exitCodes !== undefined && (page === undefined || !exitCodes.has(page.exit[slot]!))) return false;
  if (endedSince !== undefined && (page === undefined || page.finished[slot]! < endedSince)) return false;
  if (longer !== undefined && durationOf(run, row, now) < longer) return false;
  return lost !== true || attemptsOf(run, row).some((attempt) => attempt.lost);
};

/** Rows looked at in one turn: a few milliseconds at most. */
const PER_TURN = 50_000;

/**
 * One page of the tasks that match, by index or by duration. It yields each time it has looked at many rows, so that
 * whoever drives it can let others have their turn, and holds at most two pages of candidates, however many tasks there
 * are. A page follows from its cursor alone: nothing is kept between pages.
 */
export function* findTasks(run: Run, query: TaskQuery, now: number): Generator<undefined, TaskPage> {
  return query.sort === "index" ? yield* byIndex(run, query, now) : yield* byDuration(run, query, now);
}

function* byIndex(run: Run, query: TaskQuery, now: number): Generator<undefined, TaskPage> {
  const { reverse, limit, after } = query;
  const step = reverse ? -1 : 1;
  const first = after === undefined ? (reverse ? run.total - 1 : 0) : after.row + step;
  const rows: Row[] = [];
  let group = run.groups[0];
  for (let row = first, seen = 1; row >= 0 && row < run.total; row += step, seen += 1) {
    if (seen % PER_TURN === 0) yield;
    if (group === undefined || row < group.first || row >= group.first + group.count) {
      group = groupOf(run.groups, row);
      // a group that is not asked for is stepped over whole
      if (query.names !== undefined && !query.names.has(group.spec.name)) {
        row = reverse ? group.first : group.first + group.count - 1;
        continue;
      }
    }
    if (!matches(run, row, group, query, now)) continue;
    if (rows.length === limit) return { rows, next: { row: rows.at(-1)!, key: 0 } };
    rows.push(row);
  }
  return { rows, next: undefined };
}

function* byDuration(run: Run, query: TaskQuery, now: number): Generator<undefined, TaskPage> {
  const { reverse, limit, after } = query;
  const sign = reverse ? -1 : 1;
  /** One more than the page, to know whether another follows. */
  const keep = limit + 1;
  const rows = new Float64Array(2 * keep);
  const keys = new Float64Array(2 * keep);
  let held = 0;
  /** No row with a greater key, or the same and a greater number, can be on this page. */
  let worst: TaskCursor | undefined;
  const isBefore = (key: number, row: Row, other: TaskCursor): boolean =>
    key !== other.key ? key < other.key : row < other.row;
  /** Keeps the first `keep` of the candidates, in order. */
  const prune = (): void => {
    const order = Array.from({ length: held }, (_, i) => i).sort((a, b) => keys[a]! - keys[b]! || rows[a]! - rows[b]!);
    const kept = order.slice(0, keep).map((i): TaskCursor => ({ row: rows[i]!, key: keys[i]! }));
    held = kept.length;
    for (const [i, one] of kept.entries()) {
      rows[i] = one.row;
      keys[i] = one.key;
    }
    worst = held === keep ? kept.at(-1) : undefined;
  };
  let group = run.groups[0]!;
  for (let row = 0; row < run.total; row += 1) {
    if (row % PER_TURN === PER_TURN - 1) yield;
    if (row >= group.first + group.count) group = groupOf(run.groups, row);
    // what has not begun comes last, whichever way
    const duration = durationOf(run, row, now);
    const key = duration < 0 ? Infinity : sign * duration;
    if (worst !== undefined && !isBefore(key, row, worst)) continue;
    if (after !== undefined && !isBefore(after.key, after.row, { key, row })) continue;
    if (!matches(run, row, group, query, now)) continue;
    rows[held] = row;
    keys[held] = key;
    held += 1;
    if (held === rows.length) prune();
  }
  prune();
  const count = Math.min(held, limit);
  const page = Array.from(rows.subarray(0, count));
  return { rows: page, next: held > limit ? { row: rows[count - 1]!, key: keys[count - 1]! } : undefined };
}
