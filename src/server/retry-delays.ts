import type { Run } from "../core/run.ts";
import { isReady, peek } from "../core/table.ts";
import { type LongTimer, startTimer } from "../long-timer.ts";
import type { Clock } from "./clock.ts";
import type { Row } from "../core/ids.ts";

/** Rows whose retry is delayed; each has one timer that makes it ready. */
export type RetryDelay = (run: Run, row: Row, until: number) => void;

export const createRetryDelay = (clock: Clock, onReady: (run: Run, row: Row) => void): RetryDelay => {
  const timers = new Map<string, LongTimer>();

  return (run, row, until) => {
    const key = `${run.id}.${row}`;
    timers.get(key)?.stop();
    const due = (): void => {
      timers.delete(key);
      const page = peek(run.table, row);
      const slot = row % run.table.pageRows;
      if (page === undefined || !isReady(page.state[slot]!, page.agent[slot]!)) return;
      // cancelled and retried meanwhile: it waits for no delay and is already in the queue
      if (page.finished[slot] === 0) return;
      onReady(run, row);
    };
    timers.set(key, startTimer(until - clock(), due));
  };
};
