import { FRACTION, isByteResource, toUnits } from "./resources.ts";

/**
 * What people write for times, sizes and amounts, and what they read back. Every parser either gives a finite,
 * non-negative number within bounds or throws a RangeError whose message completes "KEY: …".
 */

/** 100 years of 365.25 days. */
export const MAX_SECONDS = 3_155_760_000;
/** One pebibyte. */
export const MAX_BYTES = 2 ** 50;
export const MAX_CPUS = 1_000_000;
export const MAX_GPUS = 1_000_000;
/** Bound for user-defined resources: their units stay exact integers. */
export const MAX_AMOUNT = 1_000_000_000;

const NUMBER = String.raw`\d{1,15}(?:\.\d{1,15})?|\.\d{1,15}`;
const PLAIN = new RegExp(`^(?:${NUMBER})$`);
const UNITS = new RegExp(
  `^(?:(${NUMBER})\\s*d)?\\s*(?:(${NUMBER})\\s*h)?\\s*(?:(${NUMBER})\\s*m)?\\s*(?:(${NUMBER})\\s*s)?$`,
  "i",
);
const CLOCK = /^(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,2}))?(?::(\d{1,2}))?$/;
const SIZE = new RegExp(`^(${NUMBER})\\s*(?:([kmgtp])(?:i?b)?|(b))?$`, "i");

/** A size without a unit counts megabytes. */
const SIZE_WITHOUT_UNIT = 2 ** 20;

/** Long hostile text is shown shortened, so that an error stays one readable line. */
export const quoted = (value: unknown): string => {
  const text = typeof value === "string" ? value : String(value);
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
};

const textOf = (value: string | number): string => {
  if (typeof value === "string") return value.trim();
  if (!Number.isFinite(value)) throw new RangeError(`must be a finite number, not ${value}`);
  if (value < 0) throw new RangeError(`must not be negative, got ${value}`);
  return String(value);
};

/** A plain number; exponent form is accepted only in numbers, never in text. */
const plainNumber = (value: string | number, text: string): number | undefined => {
  if (typeof value === "number") return value;
  return PLAIN.test(text) ? Number(text) : undefined;
};

const refuseNegative = (text: string): void => {
  if (/^-\s*[\d.]/.test(text)) throw new RangeError(`must not be negative, got ${quoted(text)}`);
};

const clockSeconds = (text: string): number | undefined => {
  const [matched, days, hours, minutes, seconds] = CLOCK.exec(text) ?? [];
  if (matched === undefined) return undefined;
  if (days === undefined && seconds === undefined) {
    throw new RangeError(`${quoted(text)} is ambiguous: write HH:MM:SS, or units such as 4h or 30m`);
  }
  const [h, m, s] = [Number(hours), Number(minutes ?? 0), Number(seconds ?? 0)];
  if (m > 59 || s > 59 || (days !== undefined && h > 23)) {
    throw new RangeError(
      `${quoted(text)} is not a valid time: minutes and seconds go up to 59, hours after days up to 23`,
    );
  }
  return Number(days ?? 0) * 86_400 + h * 3600 + m * 60 + s;
};

const unitSeconds = (text: string): number | undefined => {
  if (text === "") return undefined;
  const match = UNITS.exec(text);
  if (match === null) return undefined;
  const [, d, h, m, s] = match.map((part) => Number(part ?? 0));
  // Seconds are added last and separately, so that what formatDuration wrote reads back as the same number.
  return d! * 86_400 + h! * 3600 + m! * 60 + s!;
};

/** Seconds. `90`, `90s`, `10m`, `1h30m`, `2d`, `0.5s`, `HH:MM:SS`, `D-HH:MM:SS`; `MM:SS` is refused as ambiguous. */
export const parseDuration = (value: string | number): number => {
  const text = textOf(value);
  const seconds =
    plainNumber(value, text) ?? (text.length > 100 ? undefined : (unitSeconds(text) ?? clockSeconds(text)));
  if (seconds === undefined) {
    refuseNegative(text);
    throw new RangeError(
      `${quoted(value)} is not a valid duration; write 90, 90s, 10m, 1h30m, 2d, HH:MM:SS or D-HH:MM:SS`,
    );
  }
  if (seconds > MAX_SECONDS) throw new RangeError(`${quoted(value)} is more than 100 years`);
  return seconds;
};

/** Bytes. K, M, G, T and P are powers of 1024, with or without B or iB, as batch systems count; a bare number is MB. */
export const parseSize = (value: string | number): number => {
  const text = textOf(value);
  const plain = plainNumber(value, text);
  let bytes: number;
  if (plain === undefined) {
    const [matched, amount, prefix] = SIZE.exec(text) ?? [];
    if (matched === undefined) {
      refuseNegative(text);
      throw new RangeError(`${quoted(value)} is not a valid size; write 500M, 2G or 1.5GiB (a bare number is MB)`);
    }
    bytes = Number(amount) * (prefix === undefined ? 1 : 1024 ** ("kmgtp".indexOf(prefix.toLowerCase()) + 1));
  } else bytes = plain * SIZE_WITHOUT_UNIT;
  if (bytes > MAX_BYTES) throw new RangeError(`${quoted(value)} is more than 1024 TiB`);
  return Math.ceil(bytes);
};

/** How many bytes a unit of sizes stands for: `M`, `GiB`, `B`, or none. Undefined for anything else. */
export const sizeUnit = (unit: string): number | undefined => {
  if (unit === "") return SIZE_WITHOUT_UNIT;
  const [matched, , prefix] = SIZE.exec(`1${unit}`) ?? [];
  if (matched === undefined || !/^[a-z]/i.test(unit)) return undefined;
  return prefix === undefined ? 1 : 1024 ** ("kmgtp".indexOf(prefix.toLowerCase()) + 1);
};

/** A non-negative number without a unit. Refuses numbers between 0 and 0.0001, the smallest amount that is counted. */
export const parseAmount = (value: string | number, max = MAX_AMOUNT): number => {
  const text = textOf(value);
  const amount = plainNumber(value, text);
  if (amount === undefined) {
    refuseNegative(text);
    throw new RangeError(`must be a number, got ${quoted(value)}`);
  }
  if (amount > max) throw new RangeError(`${quoted(value)} is more than ${max}`);
  if (amount > 0 && amount < 1 / FRACTION)
    throw new RangeError(`${quoted(value)} is less than the smallest amount, 0.0001`);
  return amount;
};

/**
 * The integer units of one requested resource. Below one, a GPU may be shared in any fraction; from one up, it must be
 * whole devices.
 */
export const parseResource = (name: string, value: string | number): number => {
  if (isByteResource(name)) return toUnits(name, parseSize(value));
  const amount = parseAmount(value, name === "cpus" ? MAX_CPUS : name === "gpus" ? MAX_GPUS : MAX_AMOUNT);
  if (name === "gpus" && amount > 1 && !Number.isInteger(amount)) {
    throw new RangeError(`above 1 must be a whole number, got ${amount} (a fraction below 1 shares one device)`);
  }
  return toUnits(name, amount);
};

/** Seconds as people write them (`1h30m`, `0.5s`), to the millisecond; parseDuration reads the same number back. */
export const formatDuration = (seconds: number): string => {
  const ms = Math.round(Math.max(0, seconds) * 1000);
  if (!Number.isFinite(ms)) return "unlimited";
  const whole = Math.floor(ms / 1000);
  const parts: string[] = [];
  const push = (amount: number, unit: string): void => {
    if (amount > 0) parts.push(`${amount}${unit}`);
  };
  push(Math.floor(whole / 86_400), "d");
  push(Math.floor(whole / 3600) % 24, "h");
  push(Math.floor(whole / 60) % 60, "m");
  push(((whole % 60) * 1000 + (ms % 1000)) / 1000, "s");
  return parts.length === 0 ? "0s" : parts.join("");
};

/** Bytes as people read them, at most two decimals (`500M`, `15.52G`); whole numbers of a unit come back exactly. */
export const formatSize = (bytes: number): string => {
  let amount = Math.max(0, bytes);
  let unit = 0;
  while (amount >= 1024 && unit < 5) {
    amount /= 1024;
    unit++;
  }
  const rounded = Math.round(amount * 100) / 100;
  return rounded >= 1024 && unit < 5 ? `1${"KMGTP"[unit]}` : `${rounded}${["B", "K", "M", "G", "T", "P"][unit]}`;
};

/** One amount for a message: `mem` and `tmp` with a unit, everything else as a number. */
export const formatResource = (name: string, units: number): string =>
  isByteResource(name) ? formatSize(units) : String(units / FRACTION);

/** The canonical spelling of names that people also write in the singular. */
export const canonicalResource = (name: string): string =>
  name === "cpu" ? "cpus" : name === "gpu" ? "gpus" : name === "memory" ? "mem" : name;

/** Why a text cannot name a resource; undefined when it can. */
export const resourceNameProblem = (name: string): string | undefined =>
  !/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name)
    ? "a resource name starts with a letter and has at most 64 letters, digits, - and _"
    : name in Object.prototype
      ? `'${name}' cannot be used as a resource name`
      : undefined;
