import { performance } from "node:perf_hooks";
import { type Family, createGauge, createHistogram } from "../metrics/families.ts";

/**
 * How late the event loop is. A timer that asks often would keep a login node busy for nobody: it runs only while
 * somebody reads the numbers. How busy the loop is, Node counts anyway.
 */

const EVERY_MS = 100;
/** Without another question it stops. */
const PATIENCE_MS = 150_000;

const BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export interface LoopWatch {
  readonly families: readonly Family[];
  /** Somebody reads the numbers. */
  asked(): void;
}

export const createLoopWatch = (): LoopWatch => {
  const lag = createHistogram(
    "slipway_event_loop_lag_seconds",
    "How late the server's event loop is, ten times a second while somebody scrapes.",
    BOUNDS,
  );
  let timer: NodeJS.Timeout | undefined;
  let askedAt = 0;
  let due = 0;

  const tick = (): void => {
    const now = performance.now();
    lag.observe(Math.max(0, now - due) / 1000);
    due = now + EVERY_MS;
    timer = now - askedAt > PATIENCE_MS ? undefined : setTimeout(tick, EVERY_MS).unref();
  };

  return {
    families: [
      lag,
      createGauge(
        "slipway_event_loop_busy_seconds_total",
        "Time that the server's event loop was not idle.",
        () => [{ value: performance.eventLoopUtilization().active / 1000 }],
        "counter",
      ),
    ],
    asked: () => {
      askedAt = performance.now();
      if (timer !== undefined) return;
      due = askedAt + EVERY_MS;
      timer = setTimeout(tick, EVERY_MS).unref();
    },
  };
};
