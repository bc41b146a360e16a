import type { Row } from "../core/ids.ts";

/** Rows that lie side by side. */
export interface Stretch {
  readonly from: number;
  readonly count: number;
}

/** Ranges that are used up are forgotten this many at a time. */
const FORGET = 1024;

const NONE: number[] = [];

/**
 * Rows in order of arrival; a million side by side are one range. Most queues hold one range and nothing else, and there is
 * one for each group that waits: so it is small.
 */
export class RowQueue {
  size = 0;
  /** The first range: rows from `from` to before `end`. */
  private from = 0;
  private end = 0;
  /** From and end of each range behind it; those before `begin` are used up. */
  private later = NONE;
  private begin = 0;
  private set = NONE;

  /** How many rows were set aside, because they did not fit. */
  get aside(): number {
    return this.set.length;
  }

  push(from: Row, count: number): void {
    this.size += count;
    const { later } = this;
    if (this.from === this.end) {
      this.from = from;
      this.end = from + count;
    } else if (this.begin === later.length) {
      if (this.end === from) this.end += count;
      else {
        this.later = [from, from + count];
        this.begin = 0;
      }
    } else if (later.at(-1) === from) later[later.length - 1]! += count;
    else later.push(from, from + count);
  }

  /** The rows that were set aside, one by one, then those behind them: the first row at `index`; undefined if none is. */
  rowAt(index: number): Row | undefined {
    const aside = this.set.length;
    if (index < aside) return this.set[index];
    return index > aside || this.from === this.end ? undefined : this.from;
  }

  /** How many lie side by side from there on. */
  countAt(index: number): number {
    return index < this.set.length ? 1 : this.end - this.from;
  }

  /** Takes rows from the beginning of what is at `index`. */
  take(index: number, count: number): void {
    this.size -= count;
    if (index >= this.set.length) this.takeFirst(count);
    else this.set = this.set.filter((_, i) => i !== index);
  }

  /** Sets the first row aside that is not yet: what is behind it has its own index then. */
  setAside(): void {
    if (this.set === NONE) this.set = [this.from];
    else this.set.push(this.from);
    this.takeFirst(1);
  }

  /** Takes out the rows that are wanted, in order. */
  sift(isWanted: (row: Row) => boolean): Row[] {
    const all = [...this];
    const wanted: Row[] = [];
    this.size = 0;
    this.from = this.end = this.begin = 0;
    this.later = NONE;
    this.set = NONE;
    for (const { from, count } of all)
      for (let row = from; row < from + count; row += 1) {
        if (isWanted(row)) wanted.push(row);
        else this.push(row, 1);
      }
    return wanted;
  }

  *[Symbol.iterator](): Generator<Stretch> {
    for (const from of this.set) yield { from, count: 1 };
    if (this.from < this.end) yield { from: this.from, count: this.end - this.from };
    for (let i = this.begin; i < this.later.length; i += 2)
      yield { from: this.later[i]!, count: this.later[i + 1]! - this.later[i]! };
  }

  private takeFirst(count: number): void {
    this.from += count;
    if (this.from < this.end) return;
    const { later, begin } = this;
    if (begin === later.length) {
      this.later = NONE;
      this.from = this.end = this.begin = 0;
      return;
    }
    this.from = later[begin]!;
    this.end = later[begin + 1]!;
    this.begin += 2;
    if (this.begin < FORGET || this.begin * 2 < later.length) return;
    this.later = later.slice(this.begin);
    this.begin = 0;
  }
}
