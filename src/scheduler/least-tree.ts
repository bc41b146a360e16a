import { type Resources, amountOf } from "../core/resources.ts";
import type { Entry, Room } from "./fit-list.ts";

/**
 * A binary tree over the leaves of a list: each node knows the least that the entries below it ask for, of each
 * resource and of time. Where that exceeds the room, nothing below fits.
 */
export interface LeastTree<T extends Entry> {
  build(leaves: readonly (readonly T[])[]): void;
  added(entry: T, leaves: readonly (readonly T[])[]): void;
  /** An entry left this leaf. */
  removed(entry: T, leaf: number, entries: readonly T[]): void;
  /** A leaf has other entries now. */
  changed(leaf: number, entries: readonly T[]): void;
  /** Sets what to look for from now on. */
  lookFor(room: Room): void;
  /** False: nothing at all fits, or nothing in this leaf. */
  mayFitAny(): boolean;
  mayFitIn(leaf: number): boolean;
  /** The first leaf after this one that may hold a fit; undefined if none does. */
  leafBehind(leaf: number): number | undefined;
}

/** How many resource names the tree tracks; the rest are checked in the entries themselves. */
const MOST_NAMES = 16;

/** The least of one resource that entries below each node ask for; Infinity where there are none. */
interface Column {
  /** Empty: the time requested. */
  readonly name: string;
  least: Float64Array;
}

const asked = ({ name }: Column, entry: Entry): number =>
  name === "" ? entry.timeRequest : amountOf(entry.asks, name);

/** `floor`: none asks for less; one that asks for just that need not be compared with the others. */
const leastOf = (column: Column, entries: readonly Entry[], floor = -Infinity): number => {
  let least = Infinity;
  for (let i = 0; i < entries.length && least > floor; i += 1) least = Math.min(least, asked(column, entries[i]!));
  return least;
};

export const createLeastTree = <T extends Entry>(): LeastTree<T> => {
  /** Leaves of the tree: a power of two. */
  let capacity = 1;
  const time: Column = { name: "", least: new Float64Array(2).fill(Infinity) };
  const columns: Column[] = [time];
  const known = new Set<string>();
  /** The most that each column may ask for. */
  const bounds: number[] = [];

  const fillColumn = (column: Column, leaves: readonly (readonly T[])[]): void => {
    const least = new Float64Array(capacity * 2).fill(Infinity);
    for (const [leaf, entries] of leaves.entries()) least[capacity + leaf] = leastOf(column, entries);
    for (let node = capacity - 1; node > 0; node -= 1) least[node] = Math.min(least[node * 2]!, least[node * 2 + 1]!);
    column.least = least;
  };

  /** Learns names, as far as there is room: a name that few entries ask for helps little anyway. */
  const learn = (asks: Resources, leaves: readonly (readonly T[])[]): void => {
    if (columns.length > MOST_NAMES) return;
    for (const name in asks)
      if (!known.has(name) && asks[name]! > 0 && columns.length <= MOST_NAMES) {
        known.add(name);
        const column: Column = { name, least: time.least };
        columns.push(column);
        fillColumn(column, leaves);
      }
  };

  const climb = ({ least }: Column, leaf: number, value: number): void => {
    let node = capacity + leaf;
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
    build: (leaves) => {
      capacity = leaves.length;
      for (const column of columns) fillColumn(column, leaves);
    },
    added: (entry, leaves) => {
      for (let i = 0; i < columns.length; i += 1) {
        const column = columns[i]!;
        const amount = asked(column, entry);
        if (amount < column.least[capacity + entry.leaf]!) climb(column, entry.leaf, amount);
      }
      learn(entry.asks, leaves);
    },
    removed: (entry, leaf, entries) => {
      for (const column of columns) {
        const least = column.least[capacity + leaf]!;
        if (asked(column, entry) === least) climb(column, leaf, leastOf(column, entries, least));
      }
    },
    changed: (leaf, entries) => {
      for (const column of columns) climb(column, leaf, leastOf(column, entries));
    },
    lookFor: ({ free, seconds, barred }) => {
      bounds[0] = seconds;
      for (let i = 1; i < columns.length; i += 1) {
        const { name } = columns[i]!;
        bounds[i] = barred.size > 0 && barred.has(name) ? 0 : Math.max(0, amountOf(free, name));
      }
    },
    mayFitAny: () => mayFit(1),
    mayFitIn: (leaf) => mayFit(capacity + leaf),
    leafBehind: (leaf) => {
      let node = capacity + leaf;
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
