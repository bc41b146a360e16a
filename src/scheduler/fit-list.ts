import { type Resources, amountOf } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";
import { BUCKET, bucketOf, createLeastTree } from "./least-tree.ts";

/**
 * Things with a shape, in order of arrival. Finds the next one that fits into what is free without looking at those
 * that do not: a tree above the entries holds, for each node, the least that anything below it asks for. Adding and
 * removing cost the logarithm of the number of entries, mostly less; a search costs that for each entry found.
 */

export interface Entry {
  readonly shape: Shape;
  /** Its position in the list; only the list sets it. */
  at: number;
}

/** What must suffice: amounts, and seconds left. */
export interface Room {
  readonly free: Resources;
  readonly seconds: number;
  /** Names of resources that must not be used at all. */
  readonly barred: ReadonlySet<string>;
}

export const NOTHING_BARRED: ReadonlySet<string> = new Set();

export interface FitList<T extends Entry> {
  readonly size: number;
  push(entry: T): void;
  remove(entry: T): void;
  /** The first one at or after `from` that fits. Positions change when something is pushed. */
  next(from: number, room: Room): T | undefined;
  /** The first of all. */
  first(): T | undefined;
  last(): T | undefined;
  [Symbol.iterator](): Iterator<T>;
}

export const fitsInto = ({ resources, timeRequest }: Shape, { free, seconds, barred }: Room): boolean => {
  if (timeRequest > seconds) return false;
  for (const name in resources) {
    const asked = resources[name]!;
    if (asked > 0 && (asked > amountOf(free, name) || barred.has(name))) return false;
  }
  return true;
};

export const createFitList = <T extends Entry>(): FitList<T> => {
  let entries: (T | undefined)[] = [];
  let size = 0;
  /** All entries before it are gone. */
  let begin = 0;
  const tree = createLeastTree();

  const rebuild = (): void => {
    entries = entries.filter((entry) => entry !== undefined);
    begin = 0;
    for (const [at, entry] of entries.entries()) entry!.at = at;
    tree.build(entries);
  };

  const inBucket = (from: number, room: Room): T | undefined => {
    const end = Math.min(entries.length, (bucketOf(from) + 1) * BUCKET);
    for (let at = from; at < end; at += 1) {
      const entry = entries[at];
      if (entry !== undefined && fitsInto(entry.shape, room)) return entry;
    }
    return undefined;
  };

  return {
    get size() {
      return size;
    },
    push: (entry) => {
      if (entries.length === tree.room) rebuild();
      entry.at = entries.length;
      entries.push(entry);
      size += 1;
      tree.added(entry, entries);
    },
    remove: (entry) => {
      if (entries[entry.at] !== entry) return;
      entries[entry.at] = undefined;
      size -= 1;
      while (begin < entries.length && entries[begin] === undefined) begin += 1;
      tree.removed(entry, entries);
    },
    next: (from, room) => {
      tree.lookFor(room);
      if (size === 0 || !tree.mayFitAny()) return undefined;
      let at = Math.max(from, begin);
      while (at < entries.length) {
        const bucket = bucketOf(at);
        if (tree.mayFitIn(bucket)) {
          const found = inBucket(at, room);
          if (found !== undefined) return found;
        }
        const behind = tree.bucketBehind(bucket);
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
