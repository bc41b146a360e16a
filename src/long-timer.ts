/**
 * Timers for durations that people write. Node's own wait 2^31 - 1 ms (24.8 days) at most, and longer ones fire at
 * once: these are re-armed until their time has come, by the monotonic clock (rule 10).
 */
export interface LongTimer {
  stop(): void;
}

const LONGEST_MS = 2 ** 31 - 1;

/** Calls back once, after this many milliseconds; the process stays alive until then, unless told otherwise. */
export const startTimer = (ms: number, action: () => void, staysAlive = true): LongTimer => {
  const due = performance.now() + ms;
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    const isLast = left <= LONGEST_MS;
    timer = setTimeout(
      () => (isLast ? action() : arm(due - performance.now())),
      isLast ? Math.max(0, left) : LONGEST_MS,
    );
    if (!staysAlive) timer.unref();
  };
  arm(ms);
  return { stop: () => clearTimeout(timer) };
};

interface Rhythm {
  readonly ms: number;
  readonly action: () => void;
  /** By the monotonic clock. */
  due: number;
}

const rhythms = new Set<Rhythm>();
let waking: { readonly at: number; readonly timer: LongTimer } | undefined;
/** Node's timers may be early by this. */
const EARLY_MS = 1;

const nextBeat = (ms: number, after: number): number => (Math.floor(after / ms) + 1) * ms;

const setAlarm = (): void => {
  const at = Math.min(...[...rhythms].map(({ due }) => due));
  if (waking?.at === at) return;
  waking?.timer.stop();
  waking = at === Infinity ? undefined : { at, timer: startTimer(at - performance.now(), wake, false) };
};

const wake = (): void => {
  waking = undefined;
  const now = performance.now();
  try {
    for (const rhythm of rhythms) {
      if (rhythm.due > now + EARLY_MS) continue;
      rhythm.due = nextBeat(rhythm.ms, Math.max(now, rhythm.due));
      rhythm.action();
    }
  } finally {
    setAlarm();
  }
};

/**
 * Calls back repeatedly, at the multiples of this many milliseconds of the process's clock: all that is due at the same
 * moment is done in one wake-up, so that a process at rest has few of them. Does not keep the process alive.
 */
export const repeatTimer = (ms: number, action: () => void): LongTimer => {
  const period = Math.max(1, ms);
  const rhythm: Rhythm = { ms: period, action, due: nextBeat(period, performance.now()) };
  rhythms.add(rhythm);
  setAlarm();
  return {
    stop: () => {
      if (rhythms.delete(rhythm)) setAlarm();
    },
  };
};
