import type { Row } from "../core/ids.ts";
import type { Resources } from "../core/resources.ts";
import { type Group, type Run, type Shape, askAlike, sameShape, shapeOfRow } from "../core/run.ts";
import { type Batch, stillWaits, waitUntil } from "./batch.ts";
import { createGroupBatches, sharedShape } from "./group-batches.ts";
import { type Lane, type Places, createPlaces } from "./places.ts";
import type { Order } from "./order.ts";
import { RowQueue } from "./row-queue.ts";
import { type Shelf, addBatch, createShelf, rankBatch, removeBatch } from "./shelf.ts";
import { type Tally, count, createTally } from "./tallies.ts";

/** The batches of what waits, each on its shelf, and how many tasks there are of each bucket. */
export interface Stock {
  readonly total: number;
  /** Those without ranks. */
  readonly singles: number;
  readonly places: Places;
  readonly tallies: ReadonlyMap<string, Tally>;
  find(group: Group, shape: Shape): Batch | undefined;
  push(run: Run, group: Group, shape: Shape, from: Row, rows: number): void;
  /** How many rows of one shape at `index` still wait, `most` at most; those before them that do not are dropped. */
  waitingAt(batch: Batch, index: number, most: number): number;
  /** Takes rows away; true if the batch has no others. */
  drop(batch: Batch, index: number, shape: Shape, rows: number): boolean;
  /** Takes out all rows of a batch whose shape is wanted. */
  sift(batch: Batch, isWanted: (shape: Shape) => boolean): Row[];
  batchesOf(run: Run): Batch[];
  /** What waits of a group has another rank now. */
  rank(run: Run, group: Group): void;
}

/** Batches of a shelf are found by their order alone: what the shelf asks for was looked at before. */
const NOTHING: Resources = {};

/** Behind all rows. */
const LAST = Number.MAX_SAFE_INTEGER;

/** The first row behind this one that asks for something else or does not wait any more; `end` if there is none. */
const alikeUntil = (batch: Batch, from: Row, end: Row): Row => {
  let row = from + 1;
  while (row < end && askAlike(batch.group, from, row) && stillWaits(batch, row)) row += 1;
  return row;
};

export const createStock = (order: Order): Stock => {
  const places = createPlaces();
  const tallies = new Map<string, Tally>();
  const batches = createGroupBatches();
  let total = 0;
  let singles = 0;
  let seq = 0;

  const change = (tally: Tally, shape: Shape, by: number): void => {
    count(tally, shape, by);
    total += by;
    if (shape.ranks === undefined) singles += by;
    if (tally.waiting === 0) tallies.delete(tally.bucket.key);
  };

  const shelfOf = (lane: Lane, shape: Shape): Shelf => {
    const { key, least } = shape.bucket;
    const known = lane.byBucket.get(key);
    if (known !== undefined) return known;
    let tally = tallies.get(key);
    if (tally === undefined) tallies.set(key, (tally = createTally(shape)));
    const shelf = createShelf(lane, tally, least, shape.timeRequest);
    lane.byBucket.set(key, shelf);
    return shelf;
  };

  const createBatch = (run: Run, group: Group, shape: Shape, from: Row): Batch => {
    const shelf = shelfOf(places.lane(shape, group.spec.priority), shape);
    const one = sharedShape(group, shape);
    // batches of one group stand together, those that were tried before with less before the others: they teach most
    const arrival = batches.anyOf(group)?.seq ?? (seq += 1);
    const { start, pressure } = order.rankOf(run, group);
    const batch: Batch = {
      run,
      group,
      shelf,
      shape: one,
      start,
      pressure,
      seq: arrival,
      row: one === undefined ? from : LAST,
      rows: new RowQueue(),
      asks: NOTHING,
      timeRequest: 0,
      leaf: -1,
    };
    batches.add(batch);
    return batch;
  };

  const forget = (batch: Batch): void => {
    batches.remove(batch);
    removeBatch(batch.shelf, batch);
    places.prune(batch.shelf);
  };

  /** Takes rows away; true if the batch has no others. */
  const drop = (batch: Batch, index: number, shape: Shape, rows: number): boolean => {
    batch.rows.take(index, rows);
    change(batch.shelf.tally, shape, -rows);
    if (batch.rows.size > 0) return false;
    forget(batch);
    return true;
  };

  const waitingAt = (batch: Batch, index: number, most: number): number => {
    const { rows, group } = batch;
    for (let from = rows.rowAt(index); from !== undefined; from = rows.rowAt(index)) {
      if (!stillWaits(batch, from)) {
        if (drop(batch, index, batch.shape ?? shapeOfRow(group, from), 1)) return 0;
        continue;
      }
      const end = from + Math.min(most, rows.countAt(index));
      return (batch.shape === undefined ? alikeUntil(batch, from, end) : waitUntil(batch, from + 1, end)) - from;
    }
    return 0;
  };

  return {
    get total() {
      return total;
    },
    get singles() {
      return singles;
    },
    places,
    tallies,
    find: batches.find,
    push: (run, group, shape, from, rows) => {
      const known = batches.find(group, shape);
      const batch = known ?? createBatch(run, group, shape, from);
      batch.rows.push(from, rows);
      change(batch.shelf.tally, shape, rows);
      if (known === undefined) addBatch(batch.shelf, batch);
    },
    waitingAt,
    drop,
    sift: (batch, isWanted) => {
      const { group, shelf, rows } = batch;
      let last: { readonly shape: Shape; readonly wanted: boolean } | undefined;
      const wanted = rows.sift((row) => {
        const shape = shapeOfRow(group, row);
        if (last === undefined || !sameShape(last.shape, shape)) last = { shape, wanted: isWanted(shape) };
        return last.wanted;
      });
      for (const row of wanted) change(shelf.tally, shapeOfRow(group, row), -1);
      if (rows.size === 0) forget(batch);
      return wanted.filter((row) => stillWaits(batch, row));
    },
    batchesOf: batches.of,
    rank: (run, group) => {
      const mine = batches.ofGroup(group);
      if (mine.length === 0) return;
      const rank = order.rankOf(run, group);
      for (const batch of mine) rankBatch(batch, rank);
    },
  };
};
