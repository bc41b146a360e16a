import type { Row } from "./ids.ts";
import { type Group, type Run, groupOf } from "./run.ts";
import { TASK_STATES, Task } from "./states.ts";

/**
 * Tasks per state of each group, for whoever watches a run. Counted once, when somebody first asks, and kept up to date
 * from then on by the doors through which states change (moves.ts): looking again costs nothing for the tasks there are,
 * and a run that nobody watches pays nothing at all. It follows from the table, so it is no part of a snapshot.
 */
export interface GroupCounts {
  /** `WIDTH` numbers for each group, one after the other. */
  readonly of: Uint32Array;
}

const WIDTH = TASK_STATES.length;

type Counted = Pick<Run, "groups" | "table" | "total">;

/** Adds the rows of a group to `of`, from `at` on. Page by page: rows whose page was never touched are in their group's base state. */
const countInto = (of: Uint32Array, at: number, { table, total }: Counted, { first, count, base }: Group): void => {
  const end = Math.min(total, first + count);
  for (let row = first; row < end;) {
    const page = table.pages[Math.floor(row / table.pageRows)];
    const pageEnd = Math.min(end, (Math.floor(row / table.pageRows) + 1) * table.pageRows);
    if (page === undefined) {
      of[at + base]! += pageEnd - row;
      row = pageEnd;
      continue;
    }
    const { state } = page;
    for (let slot = row % table.pageRows; row < pageEnd; row += 1, slot += 1) of[at + state[slot]!]! += 1;
  }
};

const count = (run: Counted): Uint32Array => {
  const of = new Uint32Array(run.groups.length * WIDTH);
  for (const group of run.groups) countInto(of, group.index * WIDTH, run, group);
  return of;
};

/** Tasks per state of one group, counted now: for whoever looks once. */
export const countRows = (run: Counted, group: Group): Uint32Array => {
  const of = new Uint32Array(WIDTH);
  countInto(of, 0, run, group);
  return of;
};

export const countsOfGroups = (run: Run): GroupCounts => (run.groupCounts ??= { of: count(run) });

/** The numbers of one group, by state code. */
export const countsOfGroup = ({ of }: GroupCounts, group: number): Uint32Array =>
  of.subarray(group * WIDTH, (group + 1) * WIDTH);

/** A row went from one state to another. */
export const moveCounted = ({ groups, groupCounts }: Run, row: Row, from: number, to: number): void => {
  if (groupCounts === undefined) return;
  const at = groupOf(groups, row).index * WIDTH;
  groupCounts.of[at + from]! -= 1;
  groupCounts.of[at + to]! += 1;
};

/** Rows of a group that were never touched may be placed now. */
export const moveUntouched = ({ groupCounts }: Run, { index }: Group, untouched: number): void => {
  if (groupCounts === undefined) return;
  groupCounts.of[index * WIDTH + Task.NEW]! -= untouched;
  groupCounts.of[index * WIDTH + Task.PENDING]! += untouched;
};
