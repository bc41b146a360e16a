import { MARKER, type OutputFd } from "../../core/output-format.ts";
import type { BatchChunk } from "./batch.ts";
import { addToGap, createTailStock, type Gap, openGap, sideOf, takeTail } from "./gap.ts";
import type { Output } from "./task-output.ts";

/** Bytes that are not in the file: each attempt has a gap there, whose last bytes wait in memory. */
export interface Losses {
  /** Bytes that could not be kept, of all tasks. */
  readonly dropped: number;
  /** Bytes that may not go to the file now: the last of them wait in memory. */
  hold(output: Output, fd: OutputFd, bytes: Buffer, cause: number): void;
  /** A chunk that did not get into the file. */
  lose(output: Output, chunk: BatchChunk, cause: number): void;
  /** The last bytes of a gap that is over. */
  takeTail(gap: Gap, fd: OutputFd): Buffer;
  /** Drops what waits in memory. */
  forget(output: Output): void;
}

const gapOf = (output: Output, cause: number): Gap => {
  if (output.cause === 0) output.cause = cause;
  return (output.gap ??= openGap(cause));
};

export const createLosses = (): Losses => {
  const tails = createTailStock();
  let dropped = 0;
  return {
    get dropped() {
      return dropped;
    },
    hold: (output, fd, bytes, cause) => {
      const gap = gapOf(output, cause);
      const before = sideOf(gap, fd).missing;
      addToGap(gap, fd, bytes, tails);
      dropped += sideOf(gap, fd).missing - before;
    },
    lose: (output, { fd, flags, length, missing = 0 }, cause) => {
      output.unended |= fd;
      sideOf(gapOf(output, cause), fd).missing += flags === MARKER ? missing : length;
      if (flags === MARKER) return;
      output.count(-length);
      dropped += length;
    },
    takeTail: (gap, fd) => takeTail(gap, fd, tails),
    forget: (output) => {
      const { gap } = output;
      if (gap === null) return;
      output.gap = null;
      for (const fd of [1, 2] as const) dropped += takeTail(gap, fd, tails).length;
    },
  };
};
