/**
 * Jobs that ended, or were refused, before their worker connected. dask-jobqueue never asks the manager: such a job would
 * keep its place for ever. It is given up and submitted again, at once the first time, then after growing pauses, until a
 * worker connects: a mistake in the configuration must not flood the manager.
 */
export interface Replacements {
  /** Failures in a row. */
  readonly failures: number;
  /** Milliseconds of a monotonic clock before which nothing is submitted again. */
  readonly notBefore: number;
}

export const NO_FAILURES: Replacements = { failures: 0, notBefore: 0 };

const PAUSES_S = [0, 10, 60, 300];

/** One more failed; its place is free again when `notBefore` has come. */
export const afterFailure = ({ failures }: Replacements, nowMs: number): Replacements => ({
  failures: failures + 1,
  notBefore: nowMs + 1000 * (PAUSES_S[failures] ?? PAUSES_S.at(-1)!),
});
