/**
 * The last success of each task that is remembered, by the hash of its identity. Typed arrays throughout: an index with
 * open addressing into entries, and the entries in a list by age. When all places are taken, the oldest makes room; a
 * task that succeeds again is the newest again.
 */

const NONE = 0xffff_ffff;
const FIRST_ROOM = 256;

/** What one takes when it is written. */
export const ENTRY_BYTES = 24;

export class Identities {
  readonly limit: number;
  #size = 0;
  #lo = new Int32Array(0);
  #hi = new Int32Array(0);
  #tookMs = new Float32Array(0);
  #peak = new Float32Array(0);
  #at = new Float64Array(0);
  #older = new Uint32Array(0);
  #newer = new Uint32Array(0);
  /** Entry + 1; 0 is free. At most half full. */
  #index = new Uint32Array(0);
  #oldest = NONE;
  #newest = NONE;

  constructor(limit: number) {
    this.limit = limit;
    this.#grow(Math.min(limit, FIRST_ROOM));
  }

  get size(): number {
    return this.#size;
  }

  /** Memory it takes. */
  get bytes(): number {
    return [this.#lo, this.#hi, this.#tookMs, this.#peak, this.#at, this.#older, this.#newer, this.#index].reduce(
      (sum, { byteLength }) => sum + byteLength,
      0,
    );
  }

  /** The entry of an identity, or -1. Valid until the next `set`. */
  find(lo: number, hi: number): number {
    const mask = this.#index.length - 1;
    for (let i = lo & mask; ; i = (i + 1) & mask) {
      const entry = this.#index[i]! - 1;
      if (entry < 0) return -1;
      if (this.#lo[entry] === lo && this.#hi[entry] === hi) return entry;
    }
  }

  tookMs(entry: number): number {
    return this.#tookMs[entry]!;
  }

  /** Bytes, or -1 where nobody could tell. */
  peak(entry: number): number {
    return this.#peak[entry]!;
  }

  /** When it ended, in epoch milliseconds. */
  at(entry: number): number {
    return this.#at[entry]!;
  }

  hashOf(entry: number): readonly [lo: number, hi: number] {
    return [this.#lo[entry]!, this.#hi[entry]!];
  }

  set(lo: number, hi: number, tookMs: number, peak: number, at: number): void {
    let entry = this.find(lo, hi);
    if (entry >= 0) this.#unlink(entry);
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
    this.#tookMs[entry] = tookMs;
    this.#peak[entry] = peak;
    this.#at[entry] = at;
    this.#link(entry);
  }

  /** Writes all of them, oldest first, ENTRY_BYTES each, little-endian: lo, hi, tookMs, peak, at. */
  write(view: DataView, from: number): void {
    let at = from;
    for (let entry = this.#oldest; entry !== NONE; entry = this.#newer[entry]!) {
      view.setInt32(at, this.#lo[entry]!, true);
      view.setInt32(at + 4, this.#hi[entry]!, true);
      view.setFloat32(at + 8, this.#tookMs[entry]!, true);
      view.setFloat32(at + 12, this.#peak[entry]!, true);
      view.setFloat64(at + 16, this.#at[entry]!, true);
      at += ENTRY_BYTES;
    }
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
    const into = <A extends Int32Array | Uint32Array | Float32Array | Float64Array>(made: A, from: A): A => {
      made.set(from);
      return made;
    };
    this.#lo = into(new Int32Array(room), this.#lo);
    this.#hi = into(new Int32Array(room), this.#hi);
    this.#tookMs = into(new Float32Array(room), this.#tookMs);
    this.#peak = into(new Float32Array(room), this.#peak);
    this.#at = into(new Float64Array(room), this.#at);
    this.#older = into(new Uint32Array(room), this.#older);
    this.#newer = into(new Uint32Array(room), this.#newer);
    let places = 8;
    while (places < room * 2) places *= 2;
    this.#index = new Uint32Array(places);
    for (let entry = 0; entry < this.#size; entry += 1) this.#reindex(entry);
  }
}
