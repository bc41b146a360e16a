import { setTimeout as sleep } from "node:timers/promises";
import type { SlipwayError } from "../errors.ts";
import { isConnectionLost } from "./transport.ts";

export interface FollowOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to look for the server, or its successor, after the connection was lost. Milliseconds. */
  readonly patience?: number | undefined;
  /** The server was there a moment ago: be patient from the start. Otherwise the first connection must succeed. */
  readonly wasThere?: boolean | undefined;
  /** Told once each time the connection is lost. */
  readonly onLost?: ((error: SlipwayError) => void) | undefined;
}

const PATIENCE = 30_000;
const LONGEST_DELAY = 2000;

/** Waits with jitter, so that many clients do not return in the same instant; an interrupt ends it early. */
export const pause = async (ms: number, signal?: AbortSignal): Promise<void> => {
  try {
    await sleep(ms * (0.5 + Math.random() / 2), undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
};

/**
 * Yields what `once` yields and starts it again after a lost connection, so that a restart of the server is not seen.
 * `once` returns true when the stream came to its own end, and calls `connected` when the server has answered.
 * An abort ends the stream without an error.
 */
export async function* resumed<T>(
  once: (connected: () => void) => AsyncGenerator<T, boolean>,
  { signal, patience = PATIENCE, wasThere = false, onLost }: FollowOptions,
): AsyncGenerator<T> {
  let lostAt: number | undefined;
  let isKnown = wasThere;
  let delay = 100;
  const connected = (): void => {
    isKnown = true;
    lostAt = undefined;
    delay = 100;
  };
  const isAborted = (): boolean => signal?.aborted === true;
  while (!isAborted()) {
    try {
      if (yield* once(connected)) return;
    } catch (error) {
      if (isAborted()) return;
      if (!isKnown || !isConnectionLost(error)) throw error;
      const now = performance.now();
      if (lostAt === undefined) {
        lostAt = now;
        onLost?.(error);
      } else if (now - lostAt > patience) throw error;
    }
    await pause(delay, signal);
    delay = Math.min(delay * 2, LONGEST_DELAY);
  }
}
