import type { Replacements } from "./replacements.ts";

/**
 * How many workers a pool starts and lets go. All is counted in workers; they are wanted in whole jobs of `perJob`, and the
 * head lets whole jobs go.
 *
 *   up     at once, also to replace ahead those whose pilot is about to end
 *   down   after a while in which there were too many all the time, the fewest that were too many: those that have not
 *          connected first, then whole jobs
 */

export interface PoolView {
  /** Workers that the framework would like to have now. */
  readonly target: number;
  /** Jobs. */
  readonly minimum: number;
  readonly maximum: number;
  readonly perJob: number;
  /** Workers that have not connected yet. */
  readonly coming: number;
  /** Those that have, without those that were asked to leave. */
  readonly connected: number;
  /** Of these, those whose pilot ends so soon that one that is asked for now would not come earlier. */
  readonly expiring: number;
}

export interface Surplus {
  readonly since: number;
  /** The fewest that were too many since then. */
  readonly least: number;
}

export interface PoolDecision {
  /** Workers to start. */
  readonly start: number;
  /** Workers that have not connected and are no longer wanted. */
  readonly cancel: number;
  /** Workers to let go at most, each with all others of its job. */
  readonly retire: number;
  readonly surplus: Surplus | undefined;
}

/** Dask waits for three looks a second apart. */
export const SURPLUS_MS = 3000;

export const wantedOf = ({
  target,
  minimum,
  maximum,
  perJob,
}: Pick<PoolView, "target" | "minimum" | "maximum" | "perJob">): number =>
  perJob * Math.min(maximum, Math.max(minimum, Math.ceil(target / perJob)));

const calm = { start: 0, cancel: 0, retire: 0, surplus: undefined } satisfies PoolDecision;

/** `notBefore`: nothing is started earlier, since what was started before died at once. */
export const decidePool = (
  view: PoolView,
  surplus: Surplus | undefined,
  nowMs: number,
  { notBefore }: Pick<Replacements, "notBefore">,
): PoolDecision => {
  const { coming, connected, expiring, perJob } = view;
  const wanted = wantedOf(view);
  const staying = coming + connected - expiring;
  if (staying < wanted) return { ...calm, start: nowMs < notBefore ? 0 : wanted - staying };
  // those that expire go by themselves
  const spare = staying - wanted;
  if (spare === 0) return calm;
  const now = { since: surplus?.since ?? nowMs, least: Math.min(surplus?.least ?? spare, spare) };
  if (nowMs - now.since < SURPLUS_MS) return { ...calm, surplus: now };
  const cancel = Math.floor(Math.min(coming, now.least) / perJob) * perJob;
  return { ...calm, cancel, retire: Math.min(now.least - cancel, connected - expiring) };
};

/** A worker that began at `startedAt` retires `livesMs` later; a new one is asked for this much earlier, and a little. */
const START_MS = 5000;
const LONGEST_LEAD_MS = 600_000;

export const isExpiring = (endsAt: number | undefined, queueWaitMs: number, now: number): boolean =>
  endsAt !== undefined && endsAt - now < Math.min(queueWaitMs + START_MS, LONGEST_LEAD_MS);

/** A moving average, as fleets have one. */
export const afterWait = (before: number | undefined, waitedMs: number): number =>
  before === undefined ? waitedMs : 0.7 * before + 0.3 * waitedMs;
