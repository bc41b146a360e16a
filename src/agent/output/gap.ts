import type { OutputFd } from "../../core/output-format.ts";

/**
 * Bytes of one attempt that are not kept, except the last of them, while memory lasts: what a program wrote last is
 * what people want to see.
 */

/** Of each stream, beyond a limit. */
export const TAIL_BYTES = 64 * 1024;
/** For all tasks of an agent together; beyond it tails do not grow any more. */
const ALL_TAILS_BYTES = 64 * 1024 * 1024;
const SMALLEST = 1024;

/** How much memory an agent's tails take. */
export interface TailStock {
  used: number;
  readonly limit: number;
}

export const createTailStock = (limit = ALL_TAILS_BYTES): TailStock => ({ used: 0, limit });

interface Side {
  /** Bytes that are gone. */
  missing: number;
  /** A ring: `length` bytes that end before `end`. */
  ring: Buffer | null;
  end: number;
  length: number;
}

/** What is left of some bytes after the first few of each stream were kept. */
export interface Gap {
  readonly cause: number;
  readonly sides: readonly [Side, Side];
}

const side = (): Side => ({ missing: 0, ring: null, end: 0, length: 0 });

export const openGap = (cause: number): Gap => ({ cause, sides: [side(), side()] });

export const sideOf = (gap: Gap, fd: OutputFd): Side => gap.sides[fd - 1]!;

const grow = (side: Side, wanted: number, stock: TailStock): void => {
  const before = side.ring?.length ?? 0;
  let size = Math.max(before, SMALLEST);
  while (size < wanted && size < TAIL_BYTES) size *= 2;
  if (size === before || stock.used + size - before > stock.limit) return;
  stock.used += size - before;
  const ring = Buffer.allocUnsafeSlow(size);
  const kept = contents(side);
  kept.copy(ring, 0);
  side.ring = ring;
  side.end = kept.length % size;
};

/** The bytes at hand, first to last. */
const contents = ({ ring, end, length }: Side): Buffer => {
  if (ring === null || length === 0) return Buffer.alloc(0);
  const start = (end - length + ring.length) % ring.length;
  if (start + length <= ring.length) return Buffer.from(ring.subarray(start, start + length));
  return Buffer.concat([ring.subarray(start), ring.subarray(0, length - (ring.length - start))]);
};

/** Takes bytes; what no longer fits is missing, the oldest first. */
export const addToGap = (gap: Gap, fd: OutputFd, bytes: Buffer, stock: TailStock): void => {
  const into = sideOf(gap, fd);
  grow(into, into.length + bytes.length, stock);
  const { ring } = into;
  if (ring === null) {
    into.missing += bytes.length;
    return;
  }
  const last = bytes.subarray(Math.max(0, bytes.length - ring.length));
  const over = Math.max(0, into.length + bytes.length - ring.length);
  into.missing += over;
  into.length = Math.min(ring.length, into.length + bytes.length);
  const first = Math.min(last.length, ring.length - into.end);
  last.copy(ring, into.end, 0, first);
  last.copy(ring, 0, first);
  into.end = (into.end + last.length) % ring.length;
};

/** The tail of a stream; its memory is free afterwards. */
export const takeTail = (gap: Gap, fd: OutputFd, stock: TailStock): Buffer => {
  const from = sideOf(gap, fd);
  const bytes = contents(from);
  stock.used -= from.ring?.length ?? 0;
  from.ring = null;
  from.end = 0;
  from.length = 0;
  return bytes;
};
