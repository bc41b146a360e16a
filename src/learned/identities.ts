import { AgedIndex, grownTo } from "../core/aged-index.ts";

/**
 * The last success of each task that is remembered, by the hash of its identity. When all places are taken, the oldest makes room; a
 * task that succeeds again is the newest again.
 */

/** What one takes when it is written. */
export const ENTRY_BYTES = 24;

export class Identities {
  readonly #index: AgedIndex;
  #tookMs = new Float32Array(0);
  #peak = new Float32Array(0);
  #at = new Float64Array(0);

  constructor(limit: number) {
    this.#index = new AgedIndex(limit, (room) => {
      this.#tookMs = grownTo(this.#tookMs, room);
      this.#peak = grownTo(this.#peak, room);
      this.#at = grownTo(this.#at, room);
    });
  }

  get limit(): number {
    return this.#index.limit;
  }

  get size(): number {
    return this.#index.size;
  }

  /** Memory it takes. */
  get bytes(): number {
    return this.#index.bytes + this.#tookMs.byteLength + this.#peak.byteLength + this.#at.byteLength;
  }

  /** The entry of an identity, or -1. Valid until the next `set`. */
  find(lo: number, hi: number): number {
    return this.#index.find(lo, hi);
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
    return this.#index.keyOf(entry);
  }

  set(lo: number, hi: number, tookMs: number, peak: number, at: number): void {
    const entry = this.#index.take(lo, hi);
    this.#tookMs[entry] = tookMs;
    this.#peak[entry] = peak;
    this.#at[entry] = at;
  }

  /** Writes all of them, oldest first, ENTRY_BYTES each, little-endian: lo, hi, tookMs, peak, at. */
  write(view: DataView, from: number): void {
    let at = from;
    for (const entry of this.#index.oldestFirst()) {
      const [lo, hi] = this.#index.keyOf(entry);
      view.setInt32(at, lo, true);
      view.setInt32(at + 4, hi, true);
      view.setFloat32(at + 8, this.#tookMs[entry]!, true);
      view.setFloat32(at + 12, this.#peak[entry]!, true);
      view.setFloat64(at + 16, this.#at[entry]!, true);
      at += ENTRY_BYTES;
    }
  }

  oldestFirst(): Generator<number> {
    return this.#index.oldestFirst();
  }
}
