import { performance } from "node:perf_hooks";

/** Monotonic time and timers (rule 10): a stepping wall clock changes nothing. */
export interface HomeClock {
  /** Milliseconds since some moment. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Calls back again and again without keeping the process alive; returns how to stop it. */
  every(ms: number, call: () => void): () => void;
}

export const systemClock: HomeClock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  every: (ms, call) => {
    const timer = setInterval(call, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};
