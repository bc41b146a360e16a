import { statfs } from "node:fs/promises";
import { Lost } from "../../core/output-lost.ts";

/**
 * When to try again a file that could not be written: after a while, longer each time, and, if the disk was full, only
 * once there is room for more than the file that keeps the server going.
 */
export interface OutputPause {
  /** Why nothing is being written at present. */
  readonly error: Error | null;
  /** The same, as each attempt reports it. */
  readonly cause: number;
  fail(error: unknown): void;
  isOver(): boolean;
}

/** The longest time between two tries. */
const LONGEST_MS = 5 * 60 * 1000;

const isFull = (error: Error): boolean => ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "");

export const createOutputPause = (directory: string, retryMs: number, resumeBytes: number): OutputPause => {
  let error: Error | null = null;
  let failedAt = -Infinity;
  let wait = retryMs;
  let looking = false;

  /** Asks the file system; the next caller finds the answer. */
  const look = async (): Promise<void> => {
    looking = true;
    const free = await statfs(directory).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => Infinity,
    );
    looking = false;
    if (free >= resumeBytes) error = null;
    else failedAt = performance.now();
  };

  return {
    get error() {
      return error;
    },
    get cause() {
      return error !== null && !isFull(error) ? Lost.WRITE_FAILED : Lost.NO_ROOM;
    },
    fail: (reason) => {
      const now = performance.now();
      // it failed again soon after a retry: be more patient
      wait = now - failedAt < 3 * wait ? Math.min(2 * wait, LONGEST_MS) : retryMs;
      failedAt = now;
      error = reason instanceof Error ? reason : new Error(String(reason));
    },
    isOver: () => {
      if (error === null) return true;
      if (looking || performance.now() - failedAt < wait) return false;
      if (!isFull(error) || resumeBytes === 0) {
        error = null;
        return true;
      }
      void look();
      return false;
    },
  };
};
