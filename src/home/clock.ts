import { performance } from "node:perf_hooks";
import { repeatTimer } from "../long-timer.ts";

/** Monotonic time and timers (rule 10): a step of the wall clock changes nothing. */
export interface HomeClock {
  /** Milliseconds since an arbitrary moment. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Calls back repeatedly without keeping the process alive; returns a function that stops it. */
  every(ms: number, call: () => void): () => void;
}

export const systemClock: HomeClock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  every: (ms, call) => repeatTimer(ms, call).stop,
};
