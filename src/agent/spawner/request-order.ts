import type { FifoPool } from "./fifo-pool.ts";
import type { Shutdown } from "./shutdown.ts";

/** Keeps requests in order: once one waits for pipes, all that follow wait behind it. */
export interface RequestOrder {
  perform(action: () => void): void;
  /** Runs code that reads requests: a malformed one ends the spawner. */
  guarded(action: () => void): void;
}

/** Each captured task takes two pipes; below this many, more are made. */
const LOW_POOL = 48;

export const noPipes = (error: unknown): void => {
  process.stderr.write(`slipway spawner: pipes cannot be made: ${String(error)}\n`);
};

export const createRequestOrder = (pool: FifoPool, shutdown: Shutdown): RequestOrder => {
  /** What came while no pipes were ready. */
  let deferred: (() => void)[] | undefined;

  const guarded = (action: () => void): void => {
    try {
      action();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      process.stderr.write(`slipway spawner: protocol error: ${error.message}\n`);
      shutdown.begin(2);
    }
  };

  const perform = (action: () => void): void => {
    if (shutdown.begun) return;
    if (deferred === undefined && pool.size < 2) deferred = [];
    if (pool.size < LOW_POOL)
      pool.refill().then(
        () => {
          const waiting = deferred ?? [];
          deferred = undefined;
          for (const each of waiting) perform(each);
        },
        (error: unknown) => {
          noPipes(error);
          shutdown.begin(3);
        },
      );
    if (deferred !== undefined) deferred.push(action);
    else guarded(action);
  };

  return { perform, guarded };
};
