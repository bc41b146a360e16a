import type { RowRanges } from "../core/events.ts";
import type { Resources } from "../core/resources.ts";
import { type Group, type Run, type Shape, shapeOfRow } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import { type Batch, type Standing, standingOf, standsBefore } from "./batch.ts";
import type { Room } from "./fit-list.ts";
import type { GroupOfRun, Order } from "./order.ts";
import type { Place } from "./places.ts";
import { type Shelf, batchAfter, batchesOf, firstBatch, settleBatch } from "./shelf.ts";
import { createStock } from "./stock.ts";
import { type WaitingShape, demandOf } from "./tallies.ts";

/**
 * The waiting tasks, in order: higher priority first, then by rank, then in order of arrival. They lie on shelves, one for each place,
 * priority and bucket; only the first ones of shelves are compared. Rows may go stale (a task was cancelled while it
 * waited): they are checked again when they are taken.
 */

type RoomFor = (batch: Batch, shape: Shape) => number;
type Give = (batch: Batch, shape: Shape, from: Row, count: number) => void;

export interface Waiting {
  /** Tasks that wait, and those of them without ranks. */
  readonly total: number;
  readonly singles: number;
  /** More than one shape waits. */
  readonly many: boolean;
  places(): Iterable<Place>;
  push(run: Run, group: Group, shape: Shape, from: Row, rows: number): void;
  /**
   * Offers what lies on a shelf, in order and before `end` if given: `room` says how many of a shape fit (less than
   * none: nothing more is wanted), and they go to `give`. Ends when the first batch is used up: other shelves may come before the next. A task that does not fit lets
   * up to eight behind it be tried.
   */
  offer(shelf: Shelf, end: Batch | undefined, room: RoomFor, give: Give): void;
  /** The first of all that still waits. */
  first(): { readonly batch: Batch; readonly row: Row } | undefined;
  /** Some of what waits has another rank now. */
  rank(groups: readonly GroupOfRun[]): void;
  /** How many tasks stand before this one. */
  before(group: Group, row: Row): number;
  /** Forgets everything about a run. */
  dropRun(run: Run): void;
  demand(nodes: readonly Resources[], sampled: number): WaitingShape[];
  /** Takes out all tasks whose shape is wanted. */
  withdraw(isWanted: (shape: Shape) => boolean): RowRanges[];
}

/** How many tasks behind one that does not fit are tried. */
const MOST_BEHIND = 8;

export const isBefore = (a: Batch, b: Batch): boolean => {
  const above = a.shelf.lane.priority - b.shelf.lane.priority;
  return above === 0 ? standsBefore(a, b) : above > 0;
};

/**
 * Visits, in order, the shelves in these places on which something may fit into a room, until `visit` says no. The room
 * may shrink and shelves may be emptied meanwhile; one that now begins with a later batch is visited again.
 */
export const visitFitting = (
  places: readonly Place[],
  room: Room,
  end: Batch | undefined,
  visit: (shelf: Shelf) => boolean,
): void => {
  const [only] = places;
  const lanes =
    only !== undefined && places.length === 1
      ? [...only.lanes]
      : places.flatMap((place) => place.lanes).toSorted((a, b) => b.priority - a.priority);
  for (let first = 0; first < lanes.length;) {
    let behind = first + 1;
    while (behind < lanes.length && lanes[behind]!.priority === lanes[first]!.priority) behind += 1;
    let last: Standing | undefined;
    let visited: Shelf | undefined;
    for (;;) {
      let best: Shelf | undefined;
      for (let i = first; i < behind; i += 1) {
        const lane = lanes[i]!;
        const next = lane.shelves.next(last, room, visited?.lane === lane ? visited : undefined);
        if (next !== undefined && (best === undefined || standsBefore(next, best))) best = next;
      }
      if (best === undefined) break;
      if (end !== undefined && !isBefore(firstBatch(best)!, end)) return;
      last = standingOf(best);
      visited = best;
      if (!visit(best)) return;
    }
    first = behind;
  }
};

export const createWaiting = (order: Order): Waiting => {
  const stock = createStock(order);
  const { places, tallies } = stock;
  /** How many more tasks that do not fit are passed over in this offer. */
  let overlooked = 0;

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

  const dropBatch = (batch: Batch): void => {
    const { rows, group } = batch;
    for (let row = rows.rowAt(0); row !== undefined; row = rows.rowAt(0)) {
      const shape = batch.shape ?? shapeOfRow(group, row);
      if (stock.drop(batch, 0, shape, batch.shape === undefined ? 1 : rows.countAt(0))) return;
    }
  };

  return {
    get total() {
      return stock.total;
    },
    get singles() {
      return stock.singles;
    },
    get many() {
      return tallies.size > 1 || Array.from(tallies.values()).some(({ mixed }) => mixed);
    },
    places: places.values,
    push: stock.push,
    offer: (shelf, end, room, give) => {
      overlooked = MOST_BEHIND;
      let batch = firstBatch(shelf);
      while (batch !== undefined && (end === undefined || isBefore(batch, end))) {
        const standing = shelf.several === undefined ? undefined : standingOf(batch);
        const goesOn =
          batch.shape === undefined ? offerRows(batch, room, give) : offerWhole(batch, batch.shape, room, give);
        if (batch.rows.size > 0) settleBatch(batch);
        if (!goesOn || overlooked === MOST_BEHIND || standing === undefined) return;
        batch = batchAfter(shelf, standing);
      }
    },
    first: () => {
      for (;;) {
        let best: Batch | undefined;
        for (const { lanes } of places.values()) {
          const first = firstBatch(lanes[0]!.shelves.first()!)!;
          if (best === undefined || isBefore(first, best)) best = first;
        }
        if (best === undefined) return undefined;
        if (stock.waitingAt(best, 0, 1) > 0) return { batch: best, row: best.rows.rowAt(0)! };
      }
    },
    dropRun: (run) => {
      for (const batch of stock.batchesOf(run)) dropBatch(batch);
    },
    rank: (groups) => {
      for (const { run, group } of groups) stock.rank(run, group);
    },
    before: (group, row) => {
      const mine = stock.find(group, shapeOfRow(group, row));
      if (mine === undefined) return 0;
      let sum = 0;
      for (const shelf of places.shelves())
        for (const batch of batchesOf(shelf)) if (isBefore(batch, mine)) sum += batch.rows.size;
      for (const { from, count } of mine.rows) {
        if (row >= from && row < from + count) return sum + row - from;
        sum += count;
      }
      return sum;
    },
    demand: (nodes, sampled) => demandOf(tallies.values(), places.shelves(), nodes, sampled),
    withdraw: (isWanted) => {
      const parts = new Map<number, number[]>();
      for (const batch of Array.from(places.shelves(), (shelf) => [...batchesOf(shelf)]).flat()) {
        const { id } = batch.run;
        const ranges = parts.get(id) ?? [];
        for (const row of stock.sift(batch, isWanted)) {
          if (ranges.length > 0 && ranges.at(-2)! + ranges.at(-1)! === row) ranges[ranges.length - 1]! += 1;
          else ranges.push(row, 1);
        }
        if (ranges.length > 0) parts.set(id, ranges);
      }
      return [...parts].map(([run, ranges]) => ({ run, ranges }));
    },
  };
};
