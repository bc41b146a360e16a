/**
 * Timers for durations that people write. Node's own wait 2^31 - 1 ms (24.8 days) at most, and longer ones fire at
 * once: these are re-armed until their time has come, by the monotonic clock (rule 10).
 */
export interface LongTimer {
  stop(): void;
}

const LONGEST_MS = 2 ** 31 - 1;

/** Calls back once, after this many milliseconds. */
export const startTimer = (ms: number, action: () => void): LongTimer => {
  const due = performance.now() + ms;
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    const isLast = left <= LONGEST_MS;
    timer = setTimeout(
      () => (isLast ? action() : arm(due - performance.now())),
      isLast ? Math.max(0, left) : LONGEST_MS,
    );
  };
  arm(ms);
  return { stop: () => clearTimeout(timer) };
};

/** Calls back repeatedly, this many milliseconds apart. */
export const repeatTimer = (ms: number, action: () => void): LongTimer => {
  let timer: LongTimer;
  const arm = (): void => {
    timer = startTimer(ms, () => {
      arm();
      action();
    });
  };
  arm();
  return { stop: () => timer.stop() };
};
