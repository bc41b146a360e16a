import { CHUNK_MAX_BYTES, MARKER, type OutputFd } from "../../core/output-format.ts";
import { LOST_TEXTS } from "../../core/output-lost.ts";
import { sideOf } from "./gap.ts";
import type { Losses } from "./losses.ts";
import type { Output } from "./task-output.ts";
import type { OutputWriter } from "./writer.ts";

/** Makes chunks of an attempt's bytes, and thereby gives them their place in the file. */
export interface Chunks {
  seal(output: Output, fd: OutputFd, bytes: Buffer, from: number, to: number): void;
  /** Continues behind a gap, with a marker in its place and the tail that was kept. */
  closeGap(output: Output): void;
}

const FDS = [1, 2] as const;

export const createChunks = (writer: OutputWriter, losses: Losses): Chunks => {
  const seal = (output: Output, fd: OutputFd, bytes: Buffer, from: number, to: number): void => {
    const { run, row, attempt } = output;
    for (let at = from; at < to; at += CHUNK_MAX_BYTES) {
      const length = Math.min(CHUNK_MAX_BYTES, to - at);
      writer.add(output, { run, row, attempt, fd, flags: 0, length, prev: output.lastAt }, bytes, at);
    }
  };

  const mark = (output: Output, fd: OutputFd, missing: number, cause: number): void => {
    const { run, row, attempt } = output;
    const line = `[slipway: ${missing} bytes are missing here: ${LOST_TEXTS[cause]}]\n`;
    const bytes = Buffer.from((output.unended & fd) === 0 ? line : `\n${line}`);
    output.unended &= ~fd;
    const { length } = bytes;
    writer.add(output, { run, row, attempt, fd, flags: MARKER, length, prev: output.lastAt, missing }, bytes, 0);
  };

  return {
    seal,
    closeGap: (output) => {
      const { gap } = output;
      if (gap === null) return;
      output.gap = null;
      for (const fd of FDS) {
        const tail = losses.takeTail(gap, fd);
        if (sideOf(gap, fd).missing > 0) mark(output, fd, sideOf(gap, fd).missing, gap.cause);
        if (tail.length === 0) continue;
        output.count(tail.length);
        seal(output, fd, tail, 0, tail.length);
        output.note(fd, tail);
      }
    },
  };
};
