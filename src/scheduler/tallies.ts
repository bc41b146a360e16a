import { type Resources, amountOf, isByteResource, roundUp } from "../core/resources.ts";
import { type Bucket, type Shape, sameShape, shapeOfRow } from "../core/run.ts";
import type { Batch } from "./batch.ts";
import { type Shelf, batchesOf } from "./shelf.ts";

/** What waits, counted by bucket, and told by exact amounts: what fleets need to know. */

/** What waits of one bucket. */
export interface Tally {
  readonly bucket: Bucket;
  /** Of the first task that came; all have it unless they are mixed. */
  readonly shape: Shape;
  waiting: number;
  mixed: boolean;
  /** All that waits asks for this, where it is mixed. */
  readonly sums: Record<string, number>;
}

/** What the next tasks of a shape are expected to take: the sum of what is known, and for how many nothing is known. */
export interface Sample {
  tasks: number;
  knownMs: number;
  unknown: number;
}

/** Waiting tasks whose amounts no node tells apart; their shape has the mean of what they ask for. */
export interface WaitingShape {
  readonly shape: Shape;
  readonly waiting: number;
  readonly sample: Readonly<Sample>;
}

export const createTally = (shape: Shape): Tally => ({
  bucket: shape.bucket,
  shape,
  waiting: 0,
  mixed: false,
  sums: {},
});

const addAmounts = (sums: Record<string, number>, { resources }: Shape, count: number): void => {
  for (const name in resources) if (isByteResource(name)) sums[name] = (sums[name] ?? 0) + count * resources[name]!;
};

export const count = (tally: Tally, shape: Shape, by: number): void => {
  if (!tally.mixed && !sameShape(shape, tally.shape)) {
    tally.mixed = true;
    addAmounts(tally.sums, tally.shape, tally.waiting);
  }
  tally.waiting += by;
  if (tally.mixed) addAmounts(tally.sums, shape, by);
};

/** Some of what a tally counts. */
interface Part {
  waiting: number;
  readonly sums: Record<string, number>;
  readonly sample: Sample;
}

const newPart = (waiting: number, sums: Record<string, number>): Part => ({
  waiting,
  sums,
  sample: { tasks: 0, knownMs: 0, unknown: 0 },
});

/** With the mean of what they ask for. */
const told = ({ shape, bucket, mixed }: Tally, { waiting, sums, sample }: Part): WaitingShape => {
  if (!mixed) return { shape, waiting, sample };
  const resources: Record<string, number> = { ...shape.resources };
  for (const name in sums) resources[name] = Math.max(bucket.least[name]!, Math.round(sums[name]! / waiting));
  return { shape: { ...shape, resources }, waiting, sample };
};

/** Amounts of nodes between the least and the most in a bucket: they part what fits from what does not. */
const limitsIn = ({ bucket, mixed }: Tally, nodes: readonly Resources[]): Limits => {
  const limits: [string, number[]][] = [];
  if (!mixed) return limits;
  for (const name in bucket.least) {
    if (!isByteResource(name)) continue;
    const least = bucket.least[name]!;
    const inside = nodes.map((node) => amountOf(node, name)).filter((has) => has >= least && has < roundUp(least));
    if (inside.length > 0) limits.push([name, [...new Set(inside)]]);
  }
  return limits;
};

type Limits = readonly (readonly [name: string, amounts: readonly number[]])[];

/** Tasks with equal answers fit on the same nodes. */
const sideOf = (limits: Limits, { resources }: Shape): string =>
  limits.map(([name, amounts]) => amounts.filter((has) => resources[name]! > has).length).join();

const addSample = ({ sample }: Part, { group }: Batch, rows: number, most: number): void => {
  const tasks = Math.min(most - sample.tasks, rows);
  if (tasks <= 0) return;
  const each = group.expectedMs;
  sample.tasks += tasks;
  if (each < 0) sample.unknown += tasks;
  else sample.knownMs += tasks * each;
};

/** Counts each row on its side of the limits. */
const divide = (limits: Limits, parts: Map<string, Part>, batch: Batch, sampled: number): void => {
  for (const { from, count: rows } of batch.rows)
    for (let row = from; row < from + rows; row += 1) {
      const shape = shapeOfRow(batch.group, row);
      const side = sideOf(limits, shape);
      let part = parts.get(side);
      if (part === undefined) parts.set(side, (part = newPart(0, {})));
      part.waiting += 1;
      addAmounts(part.sums, shape, 1);
      addSample(part, batch, 1, sampled);
    }
};

/**
 * All that waits, by bucket, and with what the next `sampled` tasks are expected to take. A bucket is told in parts
 * where one of the nodes has room for some of its tasks and not for others.
 */
export const demandOf = (
  tallies: Iterable<Tally>,
  shelves: Iterable<Shelf>,
  nodes: readonly Resources[],
  sampled: number,
): WaitingShape[] => {
  const parts = new Map<Tally, Map<string, Part>>();
  const limits = new Map<Tally, Limits>();
  for (const tally of tallies) {
    const inside = limitsIn(tally, nodes);
    if (inside.length > 0) limits.set(tally, inside);
    parts.set(tally, inside.length > 0 ? new Map() : new Map([["", newPart(tally.waiting, tally.sums)]]));
  }
  for (const shelf of shelves) {
    const mine = parts.get(shelf.tally)!;
    const inside = limits.get(shelf.tally);
    for (const batch of batchesOf(shelf)) {
      if (inside !== undefined) divide(inside, mine, batch, sampled);
      else {
        const whole = mine.get("")!;
        if (whole.sample.tasks >= sampled) break;
        addSample(whole, batch, batch.rows.size, sampled);
      }
    }
  }
  return [...parts].flatMap(([tally, mine]) => [...mine.values()].map((part) => told(tally, part)));
};
