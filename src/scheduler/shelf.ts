import type { Resources } from "../core/resources.ts";
import type { Row } from "../core/ids.ts";
import { type Batch, type Standing, standEqual, standsBefore } from "./batch.ts";
import { type Entry, type FitList, createFitList } from "./fit-list.ts";
import type { Rank } from "./order.ts";
import type { Lane } from "./places.ts";
import type { Tally } from "./tallies.ts";

/** What waits of one bucket with one priority: batches in order. It stands where its first batch stands. */
export interface Shelf extends Entry {
  readonly lane: Lane;
  readonly tally: Tally;
  /** As its first batch. */
  start: number;
  pressure: number;
  seq: number;
  row: Row;
  /** Most shelves hold one batch; several are in a list. */
  only: Batch | undefined;
  several: FitList<Batch, Standing> | undefined;
}

export const createShelf = (lane: Lane, tally: Tally, asks: Resources, timeRequest: number): Shelf => ({
  lane,
  tally,
  asks,
  timeRequest,
  leaf: -1,
  start: 0,
  pressure: 0,
  seq: 0,
  row: 0,
  only: undefined,
  several: undefined,
});

export const firstBatch = ({ only, several }: Shelf): Batch | undefined => only ?? several?.first();

export const batchAfter = ({ several }: Shelf, standing: Standing): Batch | undefined => several?.after(standing);

export const batchesOf = (shelf: Shelf): Iterable<Batch> =>
  shelf.only === undefined ? (shelf.several ?? []) : [shelf.only];

/** Puts the shelf where its first batch stands; one without batches leaves its lane. */
const settle = (shelf: Shelf): void => {
  const { shelves } = shelf.lane;
  const first = firstBatch(shelf);
  if (first !== undefined && shelf.leaf >= 0 && standEqual(first, shelf)) return;
  if (shelf.leaf >= 0) shelves.remove(shelf);
  shelf.leaf = -1;
  if (first === undefined) return;
  shelf.start = first.start;
  shelf.pressure = first.pressure;
  shelf.seq = first.seq;
  shelf.row = first.row;
  shelves.add(shelf);
};

export const addBatch = (shelf: Shelf, batch: Batch): void => {
  if (shelf.only === undefined && shelf.several === undefined) shelf.only = batch;
  else {
    shelf.several ??= createFitList<Batch, Standing>(standsBefore);
    if (shelf.only !== undefined) shelf.several.add(shelf.only);
    shelf.only = undefined;
    shelf.several.add(batch);
  }
  settle(shelf);
};

export const removeBatch = (shelf: Shelf, batch: Batch): void => {
  if (shelf.only === batch) shelf.only = undefined;
  else shelf.several?.remove(batch);
  if (shelf.several?.size === 0) shelf.several = undefined;
  settle(shelf);
};

const move = (batch: Batch, start: number, pressure: number, row: Row): void => {
  const { shelf } = batch;
  shelf.several?.remove(batch);
  batch.start = start;
  batch.pressure = pressure;
  batch.row = row;
  shelf.several?.add(batch);
  settle(shelf);
};

/** Puts a batch where its first row stands now. */
export const settleBatch = (batch: Batch): void => {
  if (batch.shape !== undefined) return;
  const row = batch.rows.rowAt(0) ?? batch.row;
  if (row !== batch.row) move(batch, batch.start, batch.pressure, row);
};

export const rankBatch = (batch: Batch, { start, pressure }: Rank): void => {
  if (start !== batch.start || pressure !== batch.pressure) move(batch, start, pressure, batch.row);
};
