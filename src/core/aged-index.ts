/**
 * Up to so many keys of 64 bits, each with an entry: a small number that its owner's columns are read by. Typed arrays throughout:
 * an index with open addressing into entries, and the entries in a list by age. When all places are taken, the oldest makes
 * room; a key that is taken again is the newest again.
 */

const NONE = 0xffff_ffff;
const FIRST_ROOM = 256;

export class AgedIndex {
  readonly limit: number;
  #size = 0;
  #lo = new Int32Array(0);
  #hi = new Int32Array(0);
  #older = new Uint32Array(0);
  #newer = new Uint32Array(0);
  /** Entry + 1; 0 is free. At most half full. */
  #index = new Uint32Array(0);
  #oldest = NONE;
  #newest = NONE;
  readonly #grown: (room: number) => void;

  /** `grown` is told how many entries there may be from now on. */
  constructor(limit: number, grown: (room: number) => void) {
    this.limit = limit;
    this.#grown = grown;
    this.#grow(Math.min(limit, FIRST_ROOM));
  }

  get size(): number {
    return this.#size;
  }

  /** Memory it takes. */
  get bytes(): number {
    return [this.#lo, this.#hi, this.#older, this.#newer, this.#index].reduce(
      (sum, { byteLength }) => sum + byteLength,
      0,
    );
  }

  /** The entry of a key, or -1. Valid until the next `take`. */
  find(lo: number, hi: number): number {
    const mask = this.#index.length - 1;
    for (let i = lo & mask; ; i = (i + 1) & mask) {
      const entry = this.#index[i]! - 1;
      if (entry < 0) return -1;
      if (this.#lo[entry] === lo && this.#hi[entry] === hi) return entry;
    }
  }

  keyOf(entry: number): readonly [lo: number, hi: number] {
    return [this.#lo[entry]!, this.#hi[entry]!];
  }

  /** The entry of a key, which is the newest from now on; `made` says so where it was not there. */
  take(lo: number, hi: number, made?: (entry: number) => void): number {
    let entry = this.find(lo, hi);
    const isNew = entry < 0;
    if (!isNew) this.#unlink(entry);
    else {
      if (this.#size === this.limit) {
        entry = this.#oldest;
        this.#unlink(entry);
        this.#unindex(entry);
      } else {
        if (this.#size === this.#lo.length) this.#grow(Math.min(this.limit, this.#size * 2));
        entry = this.#size;
        this.#size += 1;
      }
      this.#lo[entry] = lo;
      this.#hi[entry] = hi;
      this.#reindex(entry);
    }
    this.#link(entry);
    if (isNew) made?.(entry);
    return entry;
  }

  *oldestFirst(): Generator<number> {
    for (let entry = this.#oldest; entry !== NONE; entry = this.#newer[entry]!) yield entry;
  }

  #link(entry: number): void {
    this.#older[entry] = this.#newest;
    this.#newer[entry] = NONE;
    if (this.#newest === NONE) this.#oldest = entry;
    else this.#newer[this.#newest] = entry;
    this.#newest = entry;
  }

  #unlink(entry: number): void {
    const older = this.#older[entry]!;
    const newer = this.#newer[entry]!;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
  }

  #reindex(entry: number): void {
    const mask = this.#index.length - 1;
    let i = this.#lo[entry]! & mask;
    while (this.#index[i] !== 0) i = (i + 1) & mask;
    this.#index[i] = entry + 1;
  }

  /** Closes the gap that it leaves, so that no search ends too soon. */
  #unindex(entry: number): void {
    const mask = this.#index.length - 1;
    let gap = this.#lo[entry]! & mask;
    while (this.#index[gap] !== entry + 1) gap = (gap + 1) & mask;
    for (let i = (gap + 1) & mask; this.#index[i] !== 0; i = (i + 1) & mask) {
      const home = this.#lo[this.#index[i]! - 1]! & mask;
      // it may move to the gap unless its own place lies behind the gap
      if (((i - home) & mask) < ((i - gap) & mask)) continue;
      this.#index[gap] = this.#index[i]!;
      gap = i;
    }
    this.#index[gap] = 0;
  }

  #grow(room: number): void {
    this.#lo = grownTo(this.#lo, room);
    this.#hi = grownTo(this.#hi, room);
    this.#older = grownTo(this.#older, room);
    this.#newer = grownTo(this.#newer, room);
    let places = 8;
    while (places < room * 2) places *= 2;
    this.#index = new Uint32Array(places);
    for (let entry = 0; entry < this.#size; entry += 1) this.#reindex(entry);
    this.#grown(room);
  }
}

/** A longer column that begins like this one. */
export const grownTo = <A extends Int32Array | Uint32Array | Float32Array | Float64Array>(
  column: A,
  room: number,
): A => {
  const made = new (column.constructor as new (length: number) => A)(room);
  made.set(column);
  return made;
};
