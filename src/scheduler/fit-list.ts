import { type Resources, amountOf } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";

/**
 * Things with a shape in order of arrival, and the next of them that fits into what is free, found without a look at
 * those that do not: above the entries stands a tree of what none below a node asks less of. Adding and removing cost
 * the logarithm of the number of entries, mostly less; a search costs that for each one found.
 */

export interface Entry {
  readonly shape: Shape;
  /** Where it stands in its list; the list's own. */
  at: number;
}

/** What must suffice: amounts, and seconds that are left. */
export interface Room {
  readonly free: Resources;
  readonly seconds: number;
  /** Names of which nothing may be taken. */
  readonly barred: ReadonlySet<string>;
}

export const NOTHING_BARRED: ReadonlySet<string> = new Set();

export interface FitList<T extends Entry> {
  readonly size: number;
  push(entry: T): void;
  remove(entry: T): void;
  /** The first at `from` or behind it that fits. Places change when something is pushed. */
  next(from: number, room: Room): T | undefined;
  /** The first of all. */
  first(): T | undefined;
  last(): T | undefined;
  [Symbol.iterator](): Iterator<T>;
}

const BUCKET = 16;
/** Names that the tree knows; the others are looked at in the entries themselves. */
const MOST_NAMES = 16;

export const fitsInto = ({ resources, timeRequest }: Shape, { free, seconds, barred }: Room): boolean => {
  if (timeRequest > seconds) return false;
  for (const name in resources) {
    const asked = resources[name]!;
    if (asked > 0 && (asked > amountOf(free, name) || barred.has(name))) return false;
  }
  return true;
};

/** The least of one thing that entries below each node ask for; Infinity where there are none. Leaves are buckets. */
interface Column {
  readonly name: string;
  readonly asked: (shape: Shape) => number;
  least: Float64Array;
}

const leastOf = (column: Column, entries: readonly (Entry | undefined)[], bucket: number): number => {
  let least = Infinity;
  const end = Math.min(entries.length, (bucket + 1) * BUCKET);
  for (let at = bucket * BUCKET; at < end; at += 1) {
    const entry = entries[at];
    if (entry !== undefined) least = Math.min(least, column.asked(entry.shape));
  }
  return least;
};

export const createFitList = <T extends Entry>(): FitList<T> => {
  let entries: (T | undefined)[] = [];
  let size = 0;
  /** Everything before it is gone. */
  let begin = 0;
  /** Buckets that the tree has room for: a power of two. */
  let capacity = 1;
  const time: Column = { name: "", asked: ({ timeRequest }) => timeRequest, least: new Float64Array(2).fill(Infinity) };
  const columns: Column[] = [time];
  const known = new Set<string>();

  const fillColumn = (column: Column): void => {
    const least = new Float64Array(capacity * 2).fill(Infinity);
    const buckets = Math.ceil(entries.length / BUCKET);
    for (let bucket = 0; bucket < buckets; bucket += 1) least[capacity + bucket] = leastOf(column, entries, bucket);
    for (let node = capacity - 1; node > 0; node -= 1) least[node] = Math.min(least[node * 2]!, least[node * 2 + 1]!);
    column.least = least;
  };

  /** The names of a shape, as far as there is room: a name that not everybody asks for tells little anyway. */
  const learn = ({ resources }: Shape): void => {
    if (columns.length > MOST_NAMES) return;
    for (const name in resources)
      if (!known.has(name) && resources[name]! > 0 && columns.length <= MOST_NAMES) {
        known.add(name);
        const column: Column = { name, asked: (shape) => amountOf(shape.resources, name), least: time.least };
        columns.push(column);
        fillColumn(column);
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

  const rebuild = (): void => {
    entries = entries.filter((entry) => entry !== undefined);
    begin = 0;
    for (const [at, entry] of entries.entries()) entry!.at = at;
    capacity = 1;
    while (capacity * BUCKET < entries.length * 2) capacity *= 2;
    for (const column of columns) fillColumn(column);
  };

  /** What each column may ask for at most. */
  const bounds: number[] = [];
  const setBounds = ({ free, seconds, barred }: Room): void => {
    bounds[0] = seconds;
    for (let i = 1; i < columns.length; i += 1) {
      const { name } = columns[i]!;
      bounds[i] = barred.has(name) ? 0 : Math.max(0, amountOf(free, name));
    }
  };
  const mayFit = (node: number): boolean => {
    for (let i = 0; i < columns.length; i += 1) if (!(columns[i]!.least[node]! <= bounds[i]!)) return false;
    return columns[0]!.least[node]! < Infinity;
  };

  const inBucket = (from: number, room: Room): T | undefined => {
    const end = Math.min(entries.length, (Math.floor(from / BUCKET) + 1) * BUCKET);
    for (let at = from; at < end; at += 1) {
      const entry = entries[at];
      if (entry !== undefined && fitsInto(entry.shape, room)) return entry;
    }
    return undefined;
  };

  /** The first bucket behind this one that may hold something; undefined if none does. */
  const bucketBehind = (bucket: number): number | undefined => {
    let node = capacity + bucket;
    for (;;) {
      while (node > 1 && (node & 1) === 1) node >>= 1;
      if (node <= 1) return undefined;
      node += 1;
      // where each column has its least on another side, neither may fit: then on from the right one
      while (mayFit(node)) {
        if (node >= capacity) return node - capacity;
        node *= 2;
        if (!mayFit(node)) node += 1;
      }
    }
  };

  return {
    get size() {
      return size;
    },
    push: (entry) => {
      if (entries.length === capacity * BUCKET) rebuild();
      entry.at = entries.length;
      entries.push(entry);
      size += 1;
      const bucket = Math.floor(entry.at / BUCKET);
      for (const column of columns) {
        const asked = column.asked(entry.shape);
        if (asked < column.least[capacity + bucket]!) climb(column, bucket, asked);
      }
      learn(entry.shape);
    },
    remove: (entry) => {
      if (entries[entry.at] !== entry) return;
      entries[entry.at] = undefined;
      size -= 1;
      while (begin < entries.length && entries[begin] === undefined) begin += 1;
      const bucket = Math.floor(entry.at / BUCKET);
      for (const column of columns)
        if (column.asked(entry.shape) === column.least[capacity + bucket]!)
          climb(column, bucket, leastOf(column, entries, bucket));
    },
    next: (from, room) => {
      setBounds(room);
      if (size === 0 || !mayFit(1)) return undefined;
      let at = Math.max(from, begin);
      while (at < entries.length) {
        const bucket = Math.floor(at / BUCKET);
        if (mayFit(capacity + bucket)) {
          const found = inBucket(at, room);
          if (found !== undefined) return found;
        }
        const behind = bucketBehind(bucket);
        if (behind === undefined) return undefined;
        at = behind * BUCKET;
      }
      return undefined;
    },
    first: () => entries[begin],
    last: () => entries.at(-1),
    *[Symbol.iterator]() {
      for (let at = begin; at < entries.length; at += 1) {
        const entry = entries[at];
        if (entry !== undefined) yield entry;
      }
    },
  };
};
