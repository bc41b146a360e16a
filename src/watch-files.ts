import { stat } from "node:fs/promises";
import { type LongTimer, repeatTimer, startTimer } from "./long-timer.ts";

/**
 * Notices that files have changed, come or gone. Their times and sizes are looked at again and again: that also works on
 * network file systems, and when an editor puts a new file in the place of the old one. A change counts when the files
 * stay as they are for one more look, so that nobody reads a file that is still being written.
 */
export interface FileWatch {
  close(): void;
}

const LOOK_MS = 5000;
/** Files that have changed are looked at again after this. */
const SETTLE_MS = 2000;

const markOf = async (path: string): Promise<string> => {
  try {
    const { mtimeMs, ctimeMs, size, ino } = await stat(path);
    return `${path} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return `${path} ${(error as NodeJS.ErrnoException).code ?? "?"}`;
  }
};

export const watchFiles = (paths: () => readonly string[], onChange: () => void, lookMs = LOOK_MS): FileWatch => {
  let settled: string | undefined;
  let last: string | undefined;
  let isLooking = false;
  let settling: LongTimer | undefined;
  let closed = false;

  const look = async (): Promise<void> => {
    // a file system that hangs is asked once
    if (isLooking) return;
    isLooking = true;
    try {
      const now = (await Promise.all(paths().map(markOf))).join("\n");
      settled ??= now;
      if (now !== settled && now === last) {
        settled = now;
        onChange();
      } else if (now !== settled && !closed) {
        settling?.stop();
        settling = startTimer(Math.min(lookMs, SETTLE_MS), () => void look(), false);
      }
      last = now;
    } finally {
      isLooking = false;
    }
  };
  void look();
  const timer: LongTimer = repeatTimer(lookMs, () => void look());
  return {
    close: () => {
      closed = true;
      timer.stop();
      settling?.stop();
    },
  };
};
