/** Times as people read them. All arithmetic is in milliseconds of the server's clock. */

const part = (value: number, unit: string): string => `${value}${unit}`;

/** `0.4 s`, `12 s`, `4m 10s`, `3h 5m`, `2d 4h`: two units at most. */
export const duration = (seconds: number | null | undefined): string => {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  const value = Math.max(0, seconds);
  if (value < 0.095) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${Math.round(value * 10) / 10} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  const units: readonly (readonly [number, string, number, string])[] = [
    [60, "m", 1, "s"],
    [3600, "h", 60, "m"],
    [86_400, "d", 3600, "h"],
  ];
  const [size, unit, smaller, smallerUnit] = units.findLast(([least]) => whole >= least)!;
  const rest = Math.floor((whole % size) / smaller);
  return rest === 0
    ? part(Math.floor(whole / size), unit)
    : `${part(Math.floor(whole / size), unit)} ${part(rest, smallerUnit)}`;
};

export const secondsBetween = (from: string | null | undefined, to: string | number | null | undefined) => {
  if (from == null || to == null) return undefined;
  return (new Date(to).getTime() - Date.parse(from)) / 1000;
};

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minutes = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const sameDay = (a: number, b: number): boolean => new Date(a).toDateString() === new Date(b).toDateString();

/** `14:03:22` today, else `17 Nov 14:03`. */
export const moment = (time: string | number | null | undefined, now: number): string => {
  if (time == null) return "–";
  const at = new Date(time).getTime();
  if (Number.isNaN(at)) return "–";
  return sameDay(at, now) ? clock.format(at) : `${day.format(at)} ${minutes.format(at)}`;
};

/** `14:03` today, else with the day: for what is yet to come, where seconds would pretend. */
export const soon = (time: string | number | null | undefined, now: number): string => {
  if (time == null) return "–";
  const at = new Date(time).getTime();
  if (Number.isNaN(at)) return "–";
  return sameDay(at, now) ? minutes.format(at) : `${day.format(at)} ${minutes.format(at)}`;
};

/** `12 s ago`, and `now` for what has just happened. */
export const ago = (time: string | null | undefined, now: number): string => {
  const seconds = secondsBetween(time, now);
  if (seconds === undefined) return "–";
  return seconds < 1 ? "now" : `${duration(Math.round(seconds))} ago`;
};

/** `in 4m`, or `due` when it is past. */
export const left = (time: string | null | undefined, now: number): string => {
  if (time == null) return "–";
  const seconds = (Date.parse(time) - now) / 1000;
  return seconds <= 0 ? "due" : duration(Math.round(seconds));
};

/** A whole time for a tooltip: date, time and zone. */
export const exact = (time: string | number | null | undefined): string | undefined =>
  time == null || Number.isNaN(new Date(time).getTime()) ? undefined : new Date(time).toString().slice(0, 33);
