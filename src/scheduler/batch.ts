import { type Group, type Run, type Shape, bucketOfRow, isUniform, sameBucket, shapeOfRow } from "../core/run.ts";
import { isReady, peek } from "../core/table.ts";
import type { Row } from "../core/ids.ts";
import type { Entry } from "./fit-list.ts";
import type { Rank } from "./order.ts";
import type { RowQueue } from "./row-queue.ts";
import type { Shelf } from "./shelf.ts";

/** Rows of one group that wait together, in order of arrival. A million waiting tasks of an array are one range. */

/** What stands before what, among tasks of equal priority. */
export interface Standing extends Rank {
  /** Order of arrival across all groups. */
  readonly seq: number;
  /** The first row of a batch whose rows have shapes of their own. */
  readonly row: Row;
}

export const standsBefore = (a: Standing, b: Standing): boolean => {
  if (a.start !== b.start) return a.start < b.start;
  if (a.pressure !== b.pressure) return a.pressure > b.pressure;
  return a.seq === b.seq ? a.row < b.row : a.seq < b.seq;
};

export const standEqual = (a: Standing, b: Standing): boolean => !standsBefore(a, b) && !standsBefore(b, a);

export interface Batch extends Entry, Standing {
  start: number;
  pressure: number;
  row: Row;
  readonly run: Run;
  readonly group: Group;
  readonly shelf: Shelf;
  /** Of all its rows; undefined: each row has its own. */
  readonly shape: Shape | undefined;
  readonly rows: RowQueue;
}

/** Whether a row may still be placed, and asks for what is kept on this shelf. */
export const stillWaits = ({ run, group, shelf, shape }: Batch, row: Row): boolean => {
  const page = peek(run.table, row);
  if (page !== undefined) {
    const slot = row % run.table.pageRows;
    if (!isReady(page.state[slot]!, page.agent[slot]!)) return false;
  }
  if (isUniform(group)) return true;
  return shape === undefined
    ? sameBucket(bucketOfRow(group, row), shelf.tally.bucket)
    : shapeOfRow(group, row) === shape;
};

/** The first of these rows, which have one shape, that may not be placed any more; `end` if all may. */
export const waitUntil = (batch: Batch, from: Row, end: Row): Row => {
  const { table } = batch.run;
  let row = from;
  if (!isUniform(batch.group)) {
    while (row < end && stillWaits(batch, row)) row += 1;
    return row;
  }
  while (row < end) {
    const page = peek(table, row);
    const first = row - (row % table.pageRows);
    const stop = Math.min(end, first + table.pageRows);
    // nothing has happened to the rows of a page that was never touched
    if (page === undefined) row = stop;
    for (; row < stop; row += 1) if (!isReady(page!.state[row - first]!, page!.agent[row - first]!)) return row;
  }
  return end;
};
