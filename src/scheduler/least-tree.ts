import { amountOf } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";
import type { Entry, Room } from "./fit-list.ts";

/**
 * A binary tree over the buckets of a list: each node knows the least that the entries below it ask for, of each
 * resource and of time. Where that exceeds the room, nothing below fits.
 */
export interface LeastTree {
  /** How many entries fit before the tree must be rebuilt. */
  readonly room: number;
  build(entries: readonly (Entry | undefined)[]): void;
  added(entry: Entry, entries: readonly (Entry | undefined)[]): void;
  removed(entry: Entry, entries: readonly (Entry | undefined)[]): void;
  /** Sets what to look for from now on. */
  lookFor(room: Room): void;
  /** False: nothing at all fits, or nothing in this bucket. */
  mayFitAny(): boolean;
  mayFitIn(bucket: number): boolean;
  /** The first bucket after this one that may hold a fit; undefined if none does. */
  bucketBehind(bucket: number): number | undefined;
}

/** Entries per leaf. */
export const BUCKET = 16;
/** How many resource names the tree tracks; the rest are checked in the entries themselves. */
const MOST_NAMES = 16;

/** The least of one resource that entries below each node ask for; Infinity where there are none. Leaves are buckets. */
interface Column {
  readonly name: string;
  readonly asked: (shape: Shape) => number;
  least: Float64Array;
}

export const bucketOf = (at: number): number => Math.floor(at / BUCKET);

const leastOf = (column: Column, entries: readonly (Entry | undefined)[], bucket: number): number => {
  let least = Infinity;
  const end = Math.min(entries.length, (bucket + 1) * BUCKET);
  for (let at = bucket * BUCKET; at < end; at += 1) {
    const entry = entries[at];
    if (entry !== undefined) least = Math.min(least, column.asked(entry.shape));
  }
  return least;
};

export const createLeastTree = (): LeastTree => {
  /** Buckets that fit into the tree: a power of two. */
  let capacity = 1;
  const time: Column = { name: "", asked: ({ timeRequest }) => timeRequest, least: new Float64Array(2).fill(Infinity) };
  const columns: Column[] = [time];
  const known = new Set<string>();
  /** The most that each column may ask for. */
  const bounds: number[] = [];

  const fillColumn = (column: Column, entries: readonly (Entry | undefined)[]): void => {
    const least = new Float64Array(capacity * 2).fill(Infinity);
    const buckets = Math.ceil(entries.length / BUCKET);
    for (let bucket = 0; bucket < buckets; bucket += 1) least[capacity + bucket] = leastOf(column, entries, bucket);
    for (let node = capacity - 1; node > 0; node -= 1) least[node] = Math.min(least[node * 2]!, least[node * 2 + 1]!);
    column.least = least;
  };

  /** Learns the names of a shape, as far as there is room: a name that few entries ask for helps little anyway. */
  const learn = ({ resources }: Shape, entries: readonly (Entry | undefined)[]): void => {
    if (columns.length > MOST_NAMES) return;
    for (const name in resources)
      if (!known.has(name) && resources[name]! > 0 && columns.length <= MOST_NAMES) {
        known.add(name);
        const column: Column = { name, asked: (shape) => amountOf(shape.resources, name), least: time.least };
        columns.push(column);
        fillColumn(column, entries);
      }
  };

  const climb = ({ least }: Column, bucket: number, value: number): void => {
    let node = capacity + bucket;
    let now = value;
    while (node > 0 && least[node] !== now) {
      least[node] = now;
      now = Math.min(now, least[node ^ 1]!);
      node >>= 1;
    }
  };

  const mayFit = (node: number): boolean => {
    for (let i = 0; i < columns.length; i += 1) if (!(columns[i]!.least[node]! <= bounds[i]!)) return false;
    return columns[0]!.least[node]! < Infinity;
  };

  return {
    get room() {
      return capacity * BUCKET;
    },
    build: (entries) => {
      capacity = 1;
      while (capacity * BUCKET < entries.length * 2) capacity *= 2;
      for (const column of columns) fillColumn(column, entries);
    },
    added: (entry, entries) => {
      const bucket = bucketOf(entry.at);
      for (const column of columns) {
        const asked = column.asked(entry.shape);
        if (asked < column.least[capacity + bucket]!) climb(column, bucket, asked);
      }
      learn(entry.shape, entries);
    },
    removed: (entry, entries) => {
      const bucket = bucketOf(entry.at);
      for (const column of columns)
        if (column.asked(entry.shape) === column.least[capacity + bucket]!)
          climb(column, bucket, leastOf(column, entries, bucket));
    },
    lookFor: ({ free, seconds, barred }) => {
      bounds[0] = seconds;
      for (let i = 1; i < columns.length; i += 1) {
        const { name } = columns[i]!;
        bounds[i] = barred.has(name) ? 0 : Math.max(0, amountOf(free, name));
      }
    },
    mayFitAny: () => mayFit(1),
    mayFitIn: (bucket) => mayFit(capacity + bucket),
    bucketBehind: (bucket) => {
      let node = capacity + bucket;
      for (;;) {
        while (node > 1 && (node & 1) === 1) node >>= 1;
        if (node <= 1) return undefined;
        node += 1;
        // if the columns have their minima on different sides, neither child may fit: then continue from the right one
        while (mayFit(node)) {
          if (node >= capacity) return node - capacity;
          node *= 2;
          if (!mayFit(node)) node += 1;
        }
      }
    },
  };
};
