import { areAlike, countOfItems, textIn, type WithItems } from "./item-source.ts";
import { quoted } from "./quantities.ts";
import type { ItemMatch } from "./spec.ts";
import { createTextIndex } from "./text-index.ts";

/**
 * Which tasks of one group belong to which of another, by their items. Places are rows counted from the group's first. Groups
 * with the same array need nothing; others at most 8 bytes for each task, or 4 for each task before and 8 for each after.
 */
export type Pairing =
  /** Each belongs to the one at the same place. */
  | { readonly kind: "alike" }
  /** Each belongs to one: place before → place after, and back. */
  | { readonly kind: "permuted"; readonly after: Uint32Array; readonly before: Uint32Array }
  | Keyed;

/** Tasks with an equal field belong together: all of a key after wait for all of it before. */
export interface Keyed {
  readonly kind: "keyed";
  /** The number of each task's key, by its place before and after. */
  readonly before: Uint32Array;
  readonly after: Uint32Array;
  /** Places after, key by key: those of key i lie from `from[i]` to `from[i + 1]`. */
  readonly from: Uint32Array;
  readonly places: Uint32Array;
  /** By key: how many there are before, how many of them have ended, and how many of these badly. */
  readonly size: Uint32Array;
  readonly ended: Uint32Array;
  readonly bad: Uint32Array;
}

/** Not one place, but perhaps several. */
export const NO_PLACE = 0xffff_ffff;

/** How many items are looked at between two pauses. */
const PIECE = 2000;

/** A group that is paired, and its name for messages. */
export interface Paired extends WithItems {
  readonly name: string;
}

/** The work, in pieces: whoever does it may do something else at each pause. Throws a RangeError that names an item. */
export type Pieces<T> = Generator<void, T>;

export const atOnce = <T>(pieces: Pieces<T>): T => {
  for (;;) {
    const next = pieces.next();
    if (next.done === true) return next.value;
  }
};

function* pairSame(before: Paired, after: Paired): Pieces<Pairing> {
  if (areAlike(before, after)) return { kind: "alike" };
  const [most, count] = [countOfItems(before), countOfItems(after)];
  const index = createTextIndex(most, (place) => textIn(before, place, undefined));
  for (let place = 0; place < most; place += 1) {
    if (place % PIECE === 0) yield;
    const text = textIn(before, place, undefined);
    if (index.add(text, place) >= 0) throw new RangeError(`${before.name} has the item ${quoted(text)} twice`);
  }
  const [toBefore, toAfter] = [new Uint32Array(count), new Uint32Array(most).fill(NO_PLACE)];
  let isAlike = most === count;
  for (let place = 0; place < count; place += 1) {
    if (place % PIECE === 0) yield;
    const text = textIn(after, place, undefined);
    const found = index.find(text);
    if (found < 0) throw new RangeError(`${before.name} has no item ${quoted(text)}, which ${after.name} has`);
    if (toAfter[found] !== NO_PLACE) throw new RangeError(`${after.name} has the item ${quoted(text)} twice`);
    toBefore[place] = found;
    toAfter[found] = place;
    if (found !== place) isAlike = false;
  }
  const missing = toAfter.indexOf(NO_PLACE);
  if (missing >= 0)
    throw new RangeError(
      `${after.name} has no item ${quoted(textIn(before, missing, undefined))}, which ${before.name} has`,
    );
  return isAlike ? { kind: "alike" } : { kind: "permuted", after: toAfter, before: toBefore };
}

const fieldIn = (items: Paired, place: number, path: readonly string[]): string => {
  try {
    return textIn(items, place, path);
  } catch (error) {
    throw new RangeError(`item ${place} of ${items.name}: ${(error as Error).message}`, { cause: error });
  }
};

function* pairKeyed(before: Paired, after: Paired, key: string): Pieces<Keyed> {
  const path = key.split(".");
  const [most, count] = [countOfItems(before), countOfItems(after)];
  const numbers = new Uint32Array(most);
  /** The first place of each key, to find others by. */
  const index = createTextIndex(most, (place) => fieldIn(before, place, path));
  let keys = 0;
  for (let place = 0; place < most; place += 1) {
    if (place % PIECE === 0) yield;
    const found = index.add(fieldIn(before, place, path), place);
    numbers[place] = found < 0 ? keys++ : numbers[found]!;
  }
  const size = new Uint32Array(keys);
  for (const number of numbers) size[number]! += 1;
  const own = new Uint32Array(count);
  const from = new Uint32Array(keys + 1);
  for (let place = 0; place < count; place += 1) {
    if (place % PIECE === 0) yield;
    const text = fieldIn(after, place, path);
    const found = index.find(text);
    if (found < 0)
      throw new RangeError(
        `no item of ${before.name} has ${key} ${quoted(text)}, as item ${place} of ${after.name} has`,
      );
    own[place] = numbers[found]!;
    from[own[place]! + 1]! += 1;
  }
  for (let number = 0; number < keys; number += 1) from[number + 1]! += from[number]!;
  const next = from.slice();
  const places = new Uint32Array(count);
  for (let place = 0; place < count; place += 1) places[next[own[place]!]!++] = place;
  return {
    kind: "keyed",
    before: numbers,
    after: own,
    from,
    places,
    size,
    ended: new Uint32Array(keys),
    bad: new Uint32Array(keys),
  };
}

export const pair = (before: Paired, after: Paired, match: ItemMatch): Pieces<Pairing> =>
  match === "same" ? pairSame(before, after) : pairKeyed(before, after, match.by);
