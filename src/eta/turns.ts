import type { RunId } from "../core/ids.ts";
import type { Steps } from "./steps.ts";

/**
 * Estimates that are worked out in turns of the loop: a small one is done at once, a large one goes on in later turns,
 * one after the other, so that nobody waits long.
 */
export interface Turns<T> {
  isUnderWay(run: RunId): boolean;
  /** Tells what came out and how many milliseconds it took: at once if that suffices, else later. */
  work(run: RunId, steps: Steps<T>, done: (result: T, ms: number) => void): void;
}

/** How many milliseconds of one turn are used. */
export const TURN_MS = 10;

interface Job<T> {
  readonly run: RunId;
  readonly steps: Steps<T>;
  readonly done: (result: T, ms: number) => void;
  ms: number;
}

/** `clock` tells milliseconds; `nextTurn` calls back in a later turn. */
export const createTurns = <T>(clock: () => number, nextTurn: (work: () => void) => void): Turns<T> => {
  /** Those that are not done yet, by run, in the order in which they came. */
  const jobs = new Map<RunId, Job<T>>();

  /** Works for one turn; true if it is done. */
  const advance = (job: Job<T>): boolean => {
    const began = clock();
    for (;;) {
      const step = job.steps.next();
      const took = clock() - began;
      if (step.done === true) {
        job.done(step.value, job.ms + took);
        return true;
      }
      if (took < TURN_MS) continue;
      job.ms += took;
      return false;
    }
  };

  const turn = (): void => {
    const [job] = jobs.values();
    if (job === undefined) return;
    jobs.delete(job.run);
    if (!advance(job)) jobs.set(job.run, job);
    if (jobs.size > 0) nextTurn(turn);
  };

  return {
    isUnderWay: (run) => jobs.has(run),
    work: (run, steps, done) => {
      const job: Job<T> = { run, steps, done, ms: 0 };
      if (advance(job)) return;
      jobs.set(run, job);
      if (jobs.size === 1) nextTurn(turn);
    },
  };
};
