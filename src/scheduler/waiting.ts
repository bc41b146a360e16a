import type { RowRanges } from "../core/events.ts";
import type { Resources } from "../core/resources.ts";
import { type Group, type Run, type Shape, shapeOfRow } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import { type Batch, standsBefore } from "./batch.ts";
import type { Room } from "./fit-list.ts";
import { type Offer, createOffer, isBefore } from "./offer.ts";
import type { GroupOfRun, Order } from "./order.ts";
import type { Place } from "./places.ts";
import { type Shelf, batchesOf, firstBatch } from "./shelf.ts";
import { createStock } from "./stock.ts";
import { type WaitingShape, demandOf } from "./tallies.ts";

/**
 * The waiting tasks, in order: higher priority first, then by rank, then in order of arrival. They lie on shelves, one for each place,
 * priority and bucket; only the first ones of shelves are compared. Rows may go stale (a task was cancelled while it
 * waited): they are checked again when they are taken.
 */

export interface Waiting {
  /** Tasks that wait, and those of them without ranks. */
  readonly total: number;
  readonly singles: number;
  /** More than one shape waits. */
  readonly many: boolean;
  places(): Iterable<Place>;
  push(run: Run, group: Group, shape: Shape, from: Row, rows: number): void;
  readonly offer: Offer;
  /** The first of all that still waits, in the places that are wanted. */
  first(isWanted?: (place: Place) => boolean): { readonly batch: Batch; readonly row: Row } | undefined;
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
    let visited: Shelf | undefined;
    // where it stood: it may be elsewhere by now
    const last = { start: 0, pressure: 0, seq: 0, row: 0 };
    for (;;) {
      let best: Shelf | undefined;
      for (let i = first; i < behind; i += 1) {
        const lane = lanes[i]!;
        const key = visited === undefined ? undefined : last;
        const next = lane.shelves.next(key, room, visited?.lane === lane ? visited : undefined);
        if (next !== undefined && (best === undefined || standsBefore(next, best))) best = next;
      }
      if (best === undefined) break;
      if (end !== undefined && !isBefore(firstBatch(best)!, end)) return;
      visited = best;
      last.start = best.start;
      last.pressure = best.pressure;
      last.seq = best.seq;
      last.row = best.row;
      if (!visit(best)) return;
    }
    first = behind;
  }
};

export const createWaiting = (order: Order): Waiting => {
  const stock = createStock(order);
  const { places, tallies } = stock;

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
    offer: createOffer(stock),
    first: (isWanted) => {
      for (;;) {
        let best: Batch | undefined;
        for (const place of places.values()) {
          if (isWanted?.(place) === false) continue;
          const first = firstBatch(place.lanes[0]!.shelves.first()!)!;
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
