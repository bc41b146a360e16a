import { MAX_SECONDS, quoted } from "../../core/quantities.ts";

/**
 * Durations as `dask.utils.parse_timedelta` reads them (`4m`, `1.5 hours`, `90`), and clocks besides (`00:30:00`,
 * `1-00:00:00`), which it does not read. All become seconds here; what Dask is given is a number with its unit.
 */

const UNITS: Readonly<Record<string, number>> = {
  us: 1e-6,
  microsecond: 1e-6,
  ms: 1e-3,
  millisecond: 1e-3,
  s: 1,
  sec: 1,
  second: 1,
  m: 60,
  min: 60,
  minute: 60,
  h: 3600,
  hr: 3600,
  hour: 3600,
  d: 86_400,
  day: 86_400,
  w: 604_800,
  week: 604_800,
};

const ONE = /^(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*([a-z]*)$/i;
const SEVERAL = /^(?:\d{1,9}(?:\.\d{1,9})?\s*[dhms]\s*){2,4}$/i;
const CLOCK = /^(?:(\d{1,6})-)?(\d{1,6}):(\d{2})(?::(\d{2}))?$/;

const unitOf = (word: string): number | undefined => {
  const lower = word.toLowerCase();
  if (lower === "") return 1;
  return Object.hasOwn(UNITS, lower)
    ? UNITS[lower]
    : lower.endsWith("s") && Object.hasOwn(UNITS, lower.slice(0, -1))
      ? UNITS[lower.slice(0, -1)]
      : undefined;
};

const clockOf = (text: string): number | undefined => {
  const [matched, days = "0", hours, minutes, seconds] = CLOCK.exec(text) ?? [];
  if (matched === undefined) return undefined;
  // HH:MM and MM:SS look the same
  if (seconds === undefined) throw new RangeError(`${quoted(text)} is ambiguous: write HH:MM:SS, or 30m`);
  if (Number(minutes) > 59 || Number(seconds) > 59)
    throw new RangeError(`${quoted(text)} is not a time: minutes and seconds go to 59`);
  return Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
};

const unitsOf = (text: string): number | undefined => {
  const [matched, amount, unit = ""] = ONE.exec(text) ?? [];
  if (matched !== undefined) {
    const seconds = unitOf(unit);
    return seconds === undefined ? undefined : Number(amount) * seconds;
  }
  if (!SEVERAL.test(text)) return undefined;
  let sum = 0;
  for (const [, part, letter = ""] of text.matchAll(/(\d+(?:\.\d+)?)\s*([dhms])/gi))
    sum += Number(part) * unitOf(letter)!;
  return sum;
};

/** Seconds. Throws a RangeError whose message completes "KEY: …". */
export const daskSeconds = (value: unknown): number => {
  if (typeof value !== "string" && typeof value !== "number")
    throw new RangeError(`must be a duration such as "4m", not ${JSON.stringify(value) ?? "nothing"}`);
  const text = String(value).trim();
  const seconds = text.length > 100 ? undefined : (unitsOf(text) ?? clockOf(text));
  if (seconds === undefined)
    throw new RangeError(`${quoted(value)} is not a valid duration; write 20s, 4m, 1.5h or HH:MM:SS`);
  if (seconds > MAX_SECONDS) throw new RangeError(`${quoted(value)} is more than 100 years`);
  return seconds;
};

/** Whether `parse_timedelta` reads this text as it stands. */
const isDasks = (text: string): boolean => ONE.test(text);

/** What Dask gets for a duration that a user wrote: their own words where it reads them. */
export const daskDuration = (value: unknown): string => {
  const seconds = daskSeconds(value);
  const text = String(value).trim();
  if (!isDasks(text)) return wholeSeconds(seconds);
  return typeof value === "number" || /^[\d.]+$/.test(text) ? `${text}s` : text;
};

/** The seed's `f"{int(td.total_seconds())}s"`. */
export const wholeSeconds = (seconds: number): string => `${Math.trunc(seconds)}s`;

const two = (value: number): string => String(value).padStart(2, "0");

/** HH:MM:SS, which every manager but LSF reads; hours may be more than 23. */
export const clockText = (seconds: number): string => {
  const whole = Math.ceil(seconds);
  return [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].map(two).join(":");
};

/** HH:MM, rounded up, as LSF has it. */
export const minutesText = (seconds: number): string => {
  const minutes = Math.ceil(seconds / 60);
  return [Math.floor(minutes / 60), minutes % 60].map(two).join(":");
};
