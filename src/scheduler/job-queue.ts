import type { Row } from "../core/ids.ts";
import type { RowRanges } from "../core/events.ts";
import { type Group, type Run, type Shape, sameShape } from "../core/run.ts";
import type { Batch } from "./batch.ts";
import type { Order, Rank } from "./order.ts";
import { type Shelf, batchesOf } from "./shelf.ts";
import { isBefore } from "./offer.ts";
import type { Waiting } from "./waiting.ts";

/**
 * Tasks that wait to become jobs of their own, in the same order as those that wait for agents. They are taken bucket
 * by bucket: tasks of one bucket ask for the same of the same manager.
 */
export interface JobQueue {
  readonly total: number;
  /** What waits, by bucket; nothing of it is taken. */
  buckets(): JobBucket[];
  /** Where a group stands among those of equal priority. */
  rankOf(run: Run, group: Group): Rank;
  /** Whether the first of a bucket stands before everything that waits for agents. */
  isFirst(bucket: JobBucket): boolean;
  /** Takes everything that waits with a wanted shape out, for a caller that will not place it. */
  withdraw(isWanted: (shape: Shape) => boolean): RowRanges[];
}

export interface JobBucket {
  readonly key: string;
  /** Of one of its tasks; the others differ in amounts of memory and tmp at most. */
  readonly shape: Shape;
  /** What comes next, in order: tasks of one group each. */
  heads(): Iterable<JobHead>;
  /** What the first of them asks for. */
  first(): Shape | undefined;
  /** Takes up to `most` tasks of the first group that ask for exactly the same; undefined when none is left. */
  take(most: number): JobTasks | undefined;
}

export interface JobHead {
  readonly run: Run;
  readonly group: Group;
  readonly priority: number;
  readonly pressure: number;
  readonly tasks: number;
}

export interface JobTasks {
  readonly run: Run;
  readonly group: Group;
  readonly shape: Shape;
  readonly rows: readonly Row[];
}

/** Nothing more is wanted. */
const NO_MORE = -1;

const headOf = ({ run, group, shelf, pressure, rows }: Batch): JobHead => ({
  run,
  group,
  priority: shelf.lane.priority,
  pressure,
  tasks: rows.size,
});

/** From one shelf, its first batch: all of one shape. */
const takeFrom = (waiting: Waiting, shelf: Shelf, most: number): JobTasks | undefined => {
  let taken: { readonly batch: Batch; readonly shape: Shape; readonly rows: Row[] } | undefined;
  waiting.offer(
    shelf,
    undefined,
    (batch, shape) => {
      if (taken === undefined) return most;
      const isSame = taken.batch === batch && sameShape(taken.shape, shape);
      return isSame && taken.rows.length < most ? most - taken.rows.length : NO_MORE;
    },
    (batch, shape, from, count) => {
      taken ??= { batch, shape, rows: [] };
      for (let row = from; row < from + count; row += 1) taken.rows.push(row);
    },
  );
  return taken === undefined
    ? undefined
    : { run: taken.batch.run, group: taken.batch.group, shape: taken.shape, rows: taken.rows };
};

export const createJobQueue = (waiting: Waiting, forAgents: Waiting, order: Order): JobQueue => {
  /** The shelves of one bucket, highest priority first. */
  const shelvesOf = (key: string): Shelf[] => {
    const found: Shelf[] = [];
    for (const { lanes } of waiting.places())
      for (const { byBucket } of lanes) {
        const shelf = byBucket.get(key);
        if (shelf !== undefined) found.push(shelf);
      }
    return found.toSorted((a, b) => b.lane.priority - a.lane.priority);
  };

  const bucketOf = (key: string, shape: Shape): JobBucket => ({
    key,
    shape,
    *heads() {
      for (const shelf of shelvesOf(key)) for (const batch of batchesOf(shelf)) yield headOf(batch);
    },
    first: () => {
      let found: Shape | undefined;
      const look = (_: Batch, shape: Shape): number => {
        found ??= shape;
        return NO_MORE;
      };
      for (const shelf of shelvesOf(key)) {
        waiting.offer(shelf, undefined, look, () => undefined);
        if (found !== undefined) break;
      }
      return found;
    },
    take: (most) => {
      for (let shelf = shelvesOf(key)[0]; shelf !== undefined; shelf = shelvesOf(key)[0]) {
        const taken = takeFrom(waiting, shelf, most);
        if (taken !== undefined) return taken;
        // what was there no longer waits
        if (shelvesOf(key)[0] === shelf && shelf.leaf >= 0) return undefined;
      }
      return undefined;
    },
  });

  return {
    get total() {
      return waiting.total;
    },
    buckets: () => {
      const found = new Map<string, JobBucket>();
      for (const { lanes } of waiting.places())
        for (const { byBucket } of lanes)
          for (const [key, { tally }] of byBucket) if (!found.has(key)) found.set(key, bucketOf(key, tally.shape));
      return [...found.values()];
    },
    rankOf: (run, group) => order.rankOf(run, group),
    isFirst: ({ key }) => {
      const first = shelvesOf(key)[0];
      const [mine] = first === undefined ? [] : batchesOf(first);
      const other = forAgents.first();
      return mine !== undefined && (other === undefined || isBefore(mine, other.batch));
    },
    withdraw: (isWanted) => waiting.withdraw(isWanted),
  };
};
