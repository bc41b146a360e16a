/**
 * Nice values that put waiting jobs of all homes into one order, where a manager lets a submitter lower a job's place.
 * Pure. A task is due at its run's end less its pressure: a date, which means the same in every home. The later it is,
 * the larger its nice value:
 *
 *     nice = clamp(factor × (date − base), 0, P − 1)
 *
 * base is the start of the current UTC day, and P the priority of a waiting job whose nice value is 0: with more than
 * P − 1 all jobs would be alike. Today's dates differ as long as factor × one day fits below P.
 */

export interface NiceScale {
  /** Milliseconds: no date before this is told apart from it. */
  readonly origin: number;
  /** By how much a nice value grows in a second. */
  readonly factor: number;
}

const DAY_SECONDS = 86_400;
/** Where no job has shown its priority yet: what nice values may be in all. */
const MOST = 2 ** 31;
export const DEFAULT_SCALE: NiceScale = { origin: Date.UTC(2023, 0, 1), factor: 1 };

/** `2026-01-31 12:00`, perhaps with `+01:00`; undefined if it is no date. */
const dateOf = (text: string): number | undefined => {
  const match = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d))?)?\s*([+-]\d\d:\d\d)?$/.exec(text.trim());
  if (match === null) return undefined;
  const [, day, time = "00:00", seconds = "00", zone = "Z"] = match;
  const at = Date.parse(`${day}T${time}:${seconds}${zone}`);
  return Number.isNaN(at) ? undefined : at;
};

/** What the manager's own configuration says; anything that makes no sense counts as not said. */
export const scaleOf = (parameters: Readonly<Record<string, string>>): NiceScale => {
  const factor = Number(parameters["nice_factor"] ?? Number.NaN);
  const origin = dateOf(parameters["time_origin"] ?? "");
  return {
    origin: origin ?? DEFAULT_SCALE.origin,
    factor: Number.isFinite(factor) && factor > 0 ? factor : DEFAULT_SCALE.factor,
  };
};

/** The same in all homes. */
export const baseOf = (now: number, { origin }: NiceScale): number =>
  Math.max(origin, Math.floor(now / (DAY_SECONDS * 1000)) * DAY_SECONDS * 1000);

/** `priority` is P, as far as it is known. */
export const niceOf = (date: number, now: number, scale: NiceScale, priority: number | undefined): number => {
  const most = Math.max(0, Math.min(MOST, priority ?? MOST) - 1);
  const nice = Math.round((scale.factor * (date - baseOf(now, scale))) / 1000);
  return Math.max(0, Math.min(most, nice));
};

/** The factor with which a day fits below P, where the present one is too large; else undefined. */
export const fittingFactor = ({ factor }: NiceScale, priority: number | undefined): number | undefined => {
  if (priority === undefined || factor * DAY_SECONDS <= priority - 1) return undefined;
  return Math.floor((Math.max(1, priority - 1) / DAY_SECONDS) * 1e6) / 1e6;
};

/** Whether it is worth a command: a minute, or a twentieth of what is between it and the start of the day. */
export const movesEnough = (before: number, after: number, { factor }: NiceScale): boolean => {
  const moved = Math.abs(after - before);
  return moved > 0 && moved >= Math.max(1, Math.min(60 * factor, before / 20));
};
