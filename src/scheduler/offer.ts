import { type Shape, shapeOfRow } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import { type Batch, type Standing, standsBefore } from "./batch.ts";
import { type Shelf, batchAfter, firstBatch, settleBatch } from "./shelf.ts";
import type { Stock } from "./stock.ts";

/** How what lies on a shelf is offered to an agent. */

type RoomFor = (batch: Batch, shape: Shape) => number;
type Give = (batch: Batch, shape: Shape, from: Row, count: number) => void;

/**
 * Offers what lies on a shelf, in order and before `end` if given: `room` says how many of a shape fit (less than none:
 * nothing more is wanted), and they go to `give`. Ends when the first batch is used up: other shelves may come before the
 * next. A task that does not fit lets up to eight behind it be tried.
 */
export type Offer = (shelf: Shelf, end: Batch | undefined, room: RoomFor, give: Give) => void;

/** How many tasks behind one that does not fit are tried. */
const MOST_BEHIND = 8;

export const isBefore = (a: Batch, b: Batch): boolean => {
  const above = a.shelf.lane.priority - b.shelf.lane.priority;
  return above === 0 ? standsBefore(a, b) : above > 0;
};

export const createOffer = (stock: Stock): Offer => {
  /** How many more tasks that do not fit are passed over in this offer. */
  let overlooked = 0;
  /** Where the batch on offer stood: it may be gone, or elsewhere, when the next one is looked for. */
  const stood: { -readonly [K in keyof Standing]: number } = { start: 0, pressure: 0, seq: 0, row: 0 };

  /** Whether what lies behind a task that does not fit is tried: `most` is the room that was found for it. */
  const triesBehind = ({ shelf }: Batch, most: number): boolean => {
    overlooked -= 1;
    return most === 0 && shelf.tally.mixed && overlooked >= 0;
  };

  /** Offers a batch of one shape; false if nothing behind it is to be tried. */
  const offerWhole = (batch: Batch, shape: Shape, room: RoomFor, give: Give): boolean => {
    for (;;) {
      const most = room(batch, shape);
      if (most <= 0) return triesBehind(batch, most);
      const count = stock.waitingAt(batch, 0, most);
      if (count === 0) return true;
      const from = batch.rows.rowAt(0)!;
      const used = stock.drop(batch, 0, shape, count);
      give(batch, shape, from, count);
      if (used) return true;
    }
  };

  /** The same row by row. */
  const offerRows = (batch: Batch, room: RoomFor, give: Give): boolean => {
    for (let index = 0; stock.waitingAt(batch, index, 1) > 0;) {
      const from = batch.rows.rowAt(index)!;
      const shape = shapeOfRow(batch.group, from);
      const most = room(batch, shape);
      if (most > 0) {
        const alone = most === 1 || batch.rows.countAt(index) === 1;
        const count = alone ? 1 : stock.waitingAt(batch, index, most);
        stock.drop(batch, index, shape, count);
        give(batch, shape, from, count);
        continue;
      }
      if (!triesBehind(batch, most)) return false;
      if (index === batch.rows.aside) batch.rows.setAside();
      index += 1;
    }
    return true;
  };

  return (shelf, end, room, give) => {
    overlooked = MOST_BEHIND;
    let batch = firstBatch(shelf);
    while (batch !== undefined && (end === undefined || isBefore(batch, end))) {
      const { several } = shelf;
      stood.start = batch.start;
      stood.pressure = batch.pressure;
      stood.seq = batch.seq;
      stood.row = batch.row;
      const goesOn =
        batch.shape === undefined ? offerRows(batch, room, give) : offerWhole(batch, batch.shape, room, give);
      if (batch.rows.size > 0) settleBatch(batch);
      if (!goesOn || overlooked === MOST_BEHIND || several === undefined) return;
      batch = batchAfter(shelf, stood);
    }
  };
};
