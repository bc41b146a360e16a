import type { Entry } from "./fit-list.ts";

/**
 * Entries in order, in leaves with gaps between them. A leaf that is full shares with its neighbours, as few as have
 * room: adding costs about the logarithm of the number of entries.
 */
export interface Leaves<T extends Entry & K, K> {
  readonly size: number;
  all(): readonly (readonly T[])[];
  at(leaf: number): readonly T[];
  /** Tells the leaves that changed beside the entry's own, or that all did. */
  add(entry: T): Shared;
  /** False if it is not there. */
  remove(entry: T): boolean;
  /** Makes fewer leaves, if most are empty. */
  shrink(): boolean;
  first(): T | undefined;
  /** The first leaf with an entry behind `key`; undefined if there is none. */
  behind(key: K): number | undefined;
}

/** Leaves whose entries were moved. */
export type Shared = { readonly first: number; readonly width: number } | "all" | "none";

/** Entries per leaf. */
const LEAF = 16;
/** How full leaves are after a rebuild: there is room between entries, and more behind them. */
const FILLED = 10;

/** How full two neighbours may be together: fuller ones would soon have to share again. */
const FULLEST = 13;

const countIn = (leaves: readonly (readonly unknown[])[], first: number, width: number): number => {
  let count = 0;
  for (let leaf = first; leaf < first + width; leaf += 1) count += leaves[leaf]!.length;
  return count;
};

/** Many times as fast as slice and flat. */
const entriesIn = <T>(leaves: readonly (readonly T[])[], first: number, width: number): T[] => {
  const entries: T[] = [];
  for (let leaf = first; leaf < first + width; leaf += 1) {
    const mine = leaves[leaf]!;
    for (let i = 0; i < mine.length; i += 1) entries.push(mine[i]!);
  }
  return entries;
};

/** As `splice`, which makes a list of what it takes out. */
const takeOut = (entries: unknown[], at: number): void => {
  for (let i = at + 1; i < entries.length; i += 1) entries[i - 1] = entries[i];
  entries.pop();
};

/** `isBefore` orders all entries: no two are equal. */
export const createLeaves = <T extends Entry & K, K>(isBefore: (a: K, b: K) => boolean): Leaves<T, K> => {
  /** Leaves, a power of two. */
  let capacity = 1;
  let leaves: T[][] = [[]];
  /** The last entry below each node of a binary tree above the leaves. */
  let lasts: (T | undefined)[] = [undefined, undefined];

  const setLast = (leaf: number): void => {
    let node = capacity + leaf;
    lasts[node] = leaves[leaf]!.at(-1);
    for (node >>= 1; node > 0; node >>= 1) {
      const last = lasts[node * 2 + 1] ?? lasts[node * 2];
      if (lasts[node] === last) return;
      lasts[node] = last;
    }
  };

  /** Puts entries into leaves from `first` on, `each` in every one of them. */
  const spread = (entries: readonly T[], first: number, count: number, each: number): void => {
    for (let leaf = first, from = 0; leaf < first + count; leaf += 1, from += each) {
      const mine = entries.slice(from, from + each);
      for (const entry of mine) entry.leaf = leaf;
      leaves[leaf] = mine;
    }
  };

  const rebuild = (): Shared => {
    const entries = entriesIn(leaves, 0, capacity);
    capacity = 1;
    while (capacity * FILLED < entries.length * 2) capacity *= 2;
    leaves = Array.from({ length: capacity }, () => []);
    lasts = Array.from({ length: capacity * 2 });
    spread(entries, 0, Math.ceil(entries.length / FILLED), FILLED);
    for (let leaf = 0; leaf < capacity; leaf += 1) lasts[capacity + leaf] = leaves[leaf]!.at(-1);
    for (let node = capacity - 1; node > 0; node -= 1) lasts[node] = lasts[node * 2 + 1] ?? lasts[node * 2];
    return "all";
  };

  /** Makes room in a full leaf: with as few neighbours as have enough of it, the fewer the fuller. */
  const makeRoom = (full: number): Shared => {
    // what comes last and goes first leaves the beginning empty: all move there, and the second half is free again
    if (full === capacity - 1 && capacity > 1) return rebuild();
    for (let width = 2, most = FULLEST; width <= capacity; width *= 2, most = Math.max(FILLED, most - 0.5)) {
      const first = full - (full % width);
      if (countIn(leaves, first, width) > most * width) continue;
      spread(entriesIn(leaves, first, width), first, width, Math.ceil(countIn(leaves, first, width) / width));
      for (let leaf = first; leaf < first + width; leaf += 1) setLast(leaf);
      return { first, width };
    }
    return rebuild();
  };

  const behind = (key: K): number | undefined => {
    const last = lasts[1];
    if (last === undefined || !isBefore(key, last)) return undefined;
    let node = 1;
    while (node < capacity) {
      node *= 2;
      const left = lasts[node];
      if (left === undefined || !isBefore(key, left)) node += 1;
    }
    return node - capacity;
  };

  /** The leaf for an entry: where the next one lies, or at the end. */
  const leafFor = (entry: T): number => {
    const next = behind(entry);
    if (next !== undefined) return next;
    const last = lasts[1]?.leaf ?? 0;
    return leaves[last]!.length === LEAF && last + 1 < capacity ? last + 1 : last;
  };

  // a field, not a getter: V8 keeps what a getter of a literal refers to until a full collection
  const made = {
    size: 0,
    all: () => leaves,
    at: (leaf: number) => leaves[leaf]!,
    add: (entry: T) => {
      let leaf = leafFor(entry);
      let shared: Shared = "none";
      if (leaves[leaf]!.length === LEAF) {
        shared = makeRoom(leaf);
        leaf = leafFor(entry);
      }
      const mine = leaves[leaf]!;
      let at = mine.length;
      while (at > 0 && isBefore(entry, mine[at - 1]!)) at -= 1;
      if (at === mine.length) mine.push(entry);
      else mine.splice(at, 0, entry);
      entry.leaf = leaf;
      made.size += 1;
      if (at === mine.length - 1) setLast(leaf);
      return shared;
    },
    remove: (entry: T) => {
      const mine = leaves[entry.leaf];
      const at = mine?.indexOf(entry) ?? -1;
      if (mine === undefined || at < 0) return false;
      takeOut(mine, at);
      made.size -= 1;
      if (at === mine.length) setLast(entry.leaf);
      return true;
    },
    shrink: () => capacity > 1 && made.size < capacity && rebuild() === "all",
    first: () => {
      let node = 1;
      while (node < capacity) {
        node *= 2;
        if (lasts[node] === undefined) node += 1;
      }
      return leaves[node - capacity]![0];
    },
    behind,
  };
  return made;
};
