import { SlipwayError } from "../errors.ts";
import { isFull } from "./io.ts";

export interface RetryTimes {
  /** Milliseconds between two attempts on a full disk. */
  readonly full: number;
  /** Before the second attempt after any other error; doubled for each further one. The first is immediate. */
  readonly error: number;
  /** How many attempts before such an error is fatal. */
  readonly attempts: number;
}

export const defaultRetryTimes: RetryTimes = { full: 500, error: 100, attempts: 7 };

export interface Retry {
  /** Repeats `action` as long as the disk is full, and a few times after other errors; then throws `journal-failed`. */
  run<T>(action: () => Promise<T>, options?: { readonly wait: boolean }): Promise<T>;
  /** Ends a pause. */
  now(): void;
  /** From now on nothing waits: the next failure is final. */
  last(): void;
}

export interface RetryListener {
  full(error: unknown): void;
  ok(): void;
  /** Makes space on a full disk, if it can: then the action is tried again at once. */
  relieve(): Promise<boolean>;
}

export const createRetry = (times: RetryTimes, home: string, on: RetryListener): Retry => {
  let wake: (() => void) | undefined;
  let ending = false;

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  return {
    run: async (action, { wait } = { wait: true }) => {
      for (let errors = 0; ;) {
        try {
          const result = await action();
          on.ok();
          return result;
        } catch (error) {
          if (error instanceof SlipwayError) throw error;
          const full = isFull(error);
          if (full && (await on.relieve())) continue;
          if (full) on.full(error);
          if (full && !wait) throw error;
          errors = full ? 0 : errors + 1;
          if (ending || errors > times.attempts) {
            const code = full ? "journal-full" : "journal-failed";
            throw new SlipwayError(code, { home, detail: (error as Error).message }, error);
          }
          if (full) await pause(times.full);
          else if (errors > 1) await pause(times.error * 2 ** (errors - 2));
        }
      }
    },
    now: () => wake?.(),
    last: () => {
      ending = true;
      wake?.();
    },
  };
};
