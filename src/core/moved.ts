import type { Group } from "./run.ts";
import type { Row } from "./ids.ts";

/** What an event has ended in a run, and may move what waits for it. */
export interface Moved {
  /** Groups that have ended, or of which a task did not end well. */
  readonly groups: Set<Group>;
  /** Rows that have ended, of groups that others follow item by item: `[from, count, …]`. */
  readonly rows: number[];
}

export const newMoved = (): Moved => ({ groups: new Set(), rows: [] });

export const hasMoved = ({ groups, rows }: Moved): boolean => groups.size > 0 || rows.length > 0;

export const noteRows = ({ rows }: Moved, { followers, first }: Group, from: Row, count: number): void => {
  if (followers.length === 0) return;
  const last = rows.length - 2;
  // a range lies within one group
  if (last >= 0 && from > first && rows[last]! + rows[last + 1]! === from) rows[last + 1]! += count;
  else rows.push(from, count);
};
