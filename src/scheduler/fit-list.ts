import { type Resources, amountOf } from "../core/resources.ts";
import { createLeaves } from "./leaves.ts";
import { type LeastTree, createLeastTree } from "./least-tree.ts";

/**
 * Things that ask for something, in an order of their own. Finds the next one that fits into what is free without
 * looking at those that do not: a tree above the entries holds, for each node, the least that anything below it asks
 * for. Entries lie in leaves with gaps between them; a leaf that is full shares with its neighbours. Adding, removing
 * and each step of a search cost about the logarithm of the number of entries.
 */

export interface Entry {
  readonly asks: Resources;
  readonly timeRequest: number;
  /** The leaf it lies in; only the list sets it. */
  leaf: number;
}

/** What must suffice: amounts, and seconds left. */
export interface Room {
  readonly free: Resources;
  readonly seconds: number;
  /** Names of resources that must not be used at all. */
  readonly barred: ReadonlySet<string>;
}

export const NOTHING_BARRED: ReadonlySet<string> = new Set();

/** `K` is what entries are ordered by. */
export interface FitList<T extends Entry & K, K> {
  readonly size: number;
  add(entry: T): void;
  /** Before what it is ordered by changes. */
  remove(entry: T): void;
  /**
   * The first one behind `key`, or of all, that fits. `at`: the entry whose place `key` is; if it still lies there, it
   * need not be looked for.
   */
  next(key: K | undefined, room: Room, at?: T): T | undefined;
  /** The first of all, and the first behind `key`. */
  first(): T | undefined;
  after(key: K): T | undefined;
  [Symbol.iterator](): Iterator<T>;
}

export const fitsInto = (asks: Resources, timeRequest: number, { free, seconds, barred }: Room): boolean => {
  if (timeRequest > seconds) return false;
  for (const name in asks) {
    const asked = asks[name]!;
    if (asked > 0 && (asked > amountOf(free, name) || (barred.size > 0 && barred.has(name)))) return false;
  }
  return true;
};

/** `isBefore` orders all entries: no two are equal. */
export const createFitList = <T extends Entry & K, K>(isBefore: (a: K, b: K) => boolean): FitList<T, K> => {
  const leaves = createLeaves<T, K>(isBefore);
  /** From the second leaf on: most lists have one, which is looked through sooner. */
  let tree: LeastTree<T> | undefined;

  const plant = (): void => {
    tree = undefined;
    if (leaves.all().length === 1) return;
    tree = createLeastTree<T>();
    tree.build(leaves.all());
    for (const leaf of leaves.all()) for (const entry of leaf) tree.added(entry, leaves.all());
  };

  const inLeaf = (leaf: number, from: number, room: Room): T | undefined => {
    const entries = leaves.at(leaf);
    for (let i = from; i < entries.length; i += 1) {
      const entry = entries[i]!;
      if (fitsInto(entry.asks, entry.timeRequest, room)) return entry;
    }
    return undefined;
  };

  /** How many entries of a leaf do not come after `key`. */
  const upTo = (leaf: number, key: K): number => {
    const entries = leaves.at(leaf);
    let count = 0;
    while (count < entries.length && !isBefore(key, entries[count]!)) count += 1;
    return count;
  };

  const after = (key: K): T | undefined => {
    const leaf = leaves.behind(key);
    return leaf === undefined ? undefined : leaves.at(leaf).find((entry) => isBefore(key, entry));
  };

  const list = {
    size: 0,
    add: (entry: T) => {
      const shared = leaves.add(entry);
      list.size = leaves.size;
      if (tree === undefined) return plant();
      if (shared === "all") tree.build(leaves.all());
      else if (shared !== "none")
        for (let leaf = shared.first; leaf < shared.first + shared.width; leaf += 1)
          tree.changed(leaf, leaves.at(leaf));
      tree.added(entry, leaves.all());
    },
    remove: (entry: T) => {
      const { leaf } = entry;
      if (!leaves.remove(entry)) return;
      list.size = leaves.size;
      if (!leaves.shrink()) tree?.removed(entry, leaf, leaves.at(leaf));
      else if (leaves.all().length === 1) tree = undefined;
      else tree?.build(leaves.all());
    },
    next: (key: K | undefined, room: Room, at?: T) => {
      if (leaves.size === 0) return undefined;
      tree?.lookFor(room);
      if (tree?.mayFitAny() === false) return undefined;
      let leaf: number | undefined = 0;
      let from = 0;
      if (at !== undefined && at.leaf >= 0 && key !== undefined && !isBefore(key, at) && !isBefore(at, key)) {
        leaf = at.leaf;
        from = leaves.at(leaf).indexOf(at) + 1;
      } else if (key !== undefined) {
        leaf = leaves.behind(key);
        if (leaf !== undefined) from = upTo(leaf, key);
      }
      while (leaf !== undefined) {
        const found = tree?.mayFitIn(leaf) === false ? undefined : inLeaf(leaf, from, room);
        if (found !== undefined) return found;
        from = 0;
        leaf = tree?.leafBehind(leaf);
      }
      return undefined;
    },
    first: leaves.first,
    after,
    *[Symbol.iterator]() {
      for (let entry = leaves.first(); entry !== undefined; entry = after(entry)) yield entry;
    },
  };
  return list;
};
