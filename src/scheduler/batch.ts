import { type Group, type Run, type Shape, isUniform, shapeOfRow } from "../core/run.ts";
import { isReady, peek } from "../core/table.ts";
import type { Row } from "../core/ids.ts";
import type { Entry } from "./fit-list.ts";
import type { Rank } from "./order.ts";
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

/** Rows that lie side by side. */
export interface Stretch {
  readonly from: number;
  readonly count: number;
}

export interface RowQueue {
  readonly size: number;
  /** How many rows were set aside, because they did not fit. */
  readonly aside: number;
  push(from: Row, count: number): void;
  /**
   * The rows that were set aside, one by one, then those behind them: the first row at `index`, undefined where there
   * is none, and how many lie side by side from there on.
   */
  rowAt(index: number): Row | undefined;
  countAt(index: number): number;
  /** Takes rows from the beginning of what is at `index`. */
  take(index: number, count: number): void;
  /** Sets the first row aside that is not yet: what is behind it has its own index then. */
  setAside(): void;
  /** Takes out the rows that are wanted, in order. */
  sift(isWanted: (row: Row) => boolean): Row[];
  [Symbol.iterator](): Iterator<Stretch>;
}

/** Ranges that are used up are forgotten this many at a time. */
const FORGET = 1024;

export const createRowQueue = (): RowQueue => {
  let size = 0;
  let aside: number[] = [];
  /** From and end of each range; those before `begin` are used up. */
  let ranges: number[] = [];
  let begin = 0;

  const takeFirst = (count: number): void => {
    ranges[begin]! += count;
    if (ranges[begin]! < ranges[begin + 1]!) return;
    begin += 2;
    if (begin < FORGET || begin * 2 < ranges.length) return;
    ranges = ranges.slice(begin);
    begin = 0;
  };

  function* stretches(): Generator<Stretch> {
    for (const from of aside) yield { from, count: 1 };
    for (let i = begin; i < ranges.length; i += 2) yield { from: ranges[i]!, count: ranges[i + 1]! - ranges[i]! };
  }

  const push = (from: Row, count: number): void => {
    size += count;
    if (begin < ranges.length && ranges.at(-1) === from) ranges[ranges.length - 1]! += count;
    else ranges.push(from, from + count);
  };

  return {
    get size() {
      return size;
    },
    get aside() {
      return aside.length;
    },
    push,
    rowAt: (index) => {
      if (index < aside.length) return aside[index]!;
      return index > aside.length || begin === ranges.length ? undefined : ranges[begin]!;
    },
    countAt: (index) => (index < aside.length ? 1 : ranges[begin + 1]! - ranges[begin]!),
    take: (index, count) => {
      size -= count;
      if (index >= aside.length) takeFirst(count);
      else aside = aside.filter((_, i) => i !== index);
    },
    setAside: () => {
      aside.push(ranges[begin]!);
      takeFirst(1);
    },
    sift: (isWanted) => {
      const all = [...stretches()];
      const wanted: Row[] = [];
      [size, aside, ranges, begin] = [0, [], [], 0];
      for (const { from, count } of all)
        for (let row = from; row < from + count; row += 1) {
          if (isWanted(row)) wanted.push(row);
          else push(row, 1);
        }
      return wanted;
    },
    [Symbol.iterator]: stretches,
  };
};

/** Whether a row may still be placed, and asks for what is kept on this shelf. */
export const stillWaits = ({ run, group, shelf, shape }: Batch, row: Row): boolean => {
  const page = peek(run.table, row);
  if (page !== undefined) {
    const slot = row % run.table.pageRows;
    if (!isReady(page.state[slot]!, page.agent[slot]!)) return false;
  }
  if (isUniform(group)) return true;
  const now = shapeOfRow(group, row);
  return shape === undefined ? now.bucket.key === shelf.tally.bucket.key : now === shape;
};
