import type { OutputFd } from "../../core/output-format.ts";
import type { Backlog } from "./backlog.ts";
import type { Output } from "./task-output.ts";

/** Where small pieces of output wait until they are worth a chunk, or have waited long enough. */
export interface Stage {
  add(output: Output, fd: OutputFd, bytes: Buffer): void;
  /** Sends on what waits there of an attempt. */
  clear(output: Output): void;
  clearAll(): void;
  /** From now on nothing leaves by itself. */
  stop(): void;
}

export interface StageOptions {
  /** Longest time that bytes wait. */
  readonly flushMs: number;
  readonly backlog: Backlog;
  /** The first `length` bytes leave. */
  readonly leave: (output: Output, fd: OutputFd, bytes: Buffer, length: number) => void;
}

const SMALLEST = 128;

export const createStage = ({ flushMs, backlog, leave }: StageOptions): Stage => {
  const staging = new Set<Output>();
  let timer: NodeJS.Timeout | null = null;

  const clear = (output: Output): void => {
    const { staged, stagedBytes, stagedFd } = output;
    if (staged === null || stagedBytes === 0) return;
    staging.delete(output);
    output.staged = null;
    output.stagedBytes = 0;
    leave(output, stagedFd, staged, stagedBytes);
    backlog.release(stagedBytes);
  };

  const clearAll = (): void => {
    for (const output of staging) clear(output);
  };

  const onTime = (): void => {
    timer = null;
    clearAll();
  };

  return {
    add: (output, fd, bytes) => {
      const total = output.stagedBytes + bytes.length;
      let { staged } = output;
      if (staged === null || staged.length < total) {
        let size = SMALLEST;
        while (size < total) size *= 2;
        const grown = Buffer.allocUnsafe(size);
        staged?.copy(grown, 0, 0, output.stagedBytes);
        output.staged = staged = grown;
      }
      bytes.copy(staged, output.stagedBytes);
      if (output.stagedBytes === 0) staging.add(output);
      output.stagedBytes = total;
      output.stagedFd = fd;
      backlog.add(bytes.length);
      if (timer !== null) return;
      timer = setTimeout(onTime, flushMs);
      timer.unref();
    },
    clear,
    clearAll,
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
};
