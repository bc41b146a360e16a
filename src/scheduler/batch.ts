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

export const standingOf = ({ start, pressure, seq, row }: Standing): Standing => ({ start, pressure, seq, row });

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
