import { quoted } from "../../core/quantities.ts";
import { clockText, daskDuration, daskSeconds } from "./durations.ts";
import type { ParameterType } from "./parameters.ts";

/** Checks of values as a status file holds them. Each throws a RangeError whose message completes "KEY: …". */

export interface PortRange {
  readonly from: number;
  readonly to: number;
}

export type Value =
  | string
  | number
  | boolean
  | PortRange
  | readonly string[]
  | Readonly<Record<string, string>>
  | Readonly<Record<string, number>>;

const MOST_COUNT = 1_000_000;
const MOST_LINES = 10_000;

const shown = (value: unknown): string => quoted(typeof value === "string" ? value : JSON.stringify(value));
const textIn = (value: unknown, what: string): string => {
  if (typeof value !== "string") throw new RangeError(`must be ${what}, not ${shown(value)}`);
  if (value.includes("\0")) throw new RangeError("must not hold a NUL character");
  return value;
};

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f]/;

const readWord = (value: unknown): string => {
  const text = textIn(value, "text");
  if (text === "" || CONTROL.test(text) || /[\s'"`;&|<>()\\]/.test(text))
    throw new RangeError(`must be one word without spaces, quotes and ; & | < > ( ) \\, not ${shown(text)}`);
  return text;
};

const readSize = (value: unknown): string => {
  const text = textIn(value, 'a size with its unit, such as "4GB"').trim();
  if (!/^\d{1,15}(\.\d{1,15})?\s*([kmgtp]i?)?b$/i.test(text))
    throw new RangeError(`must be a size with its unit, such as "4GB" or "500 MiB", not ${shown(text)}`);
  if (Number.parseFloat(text) === 0) throw new RangeError("must be more than nothing");
  return text;
};

/** Bytes of a size as Dask reads it: kB is 1000, KiB 1024. */
export const bytesOf = (size: string): number => {
  const [, amount = "", letter = "", binary] = /^([\d.]+)\s*([kmgtp]?)(i?)b$/i.exec(size) ?? [];
  const power = letter === "" ? 0 : "kmgtp".indexOf(letter.toLowerCase()) + 1;
  return Math.ceil(Number(amount) * (binary === "" ? 1000 : 1024) ** power);
};

const readCount = (value: unknown): number => {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > MOST_COUNT)
    throw new RangeError(`must be a whole number from 1 to ${MOST_COUNT}, not ${shown(value)}`);
  return value;
};

const readFlag = (value: unknown): boolean => {
  if (typeof value !== "boolean") throw new RangeError(`must be true or false, not ${shown(value)}`);
  return value;
};

const readList = (value: unknown, check: (line: string) => string): string[] => {
  if (!Array.isArray(value))
    throw new RangeError(`must be a list of texts, such as ["-p grappe"], not ${shown(value)}`);
  if (value.length > MOST_LINES) throw new RangeError(`must hold at most ${MOST_LINES} lines`);
  return value.map((line) => check(textIn(line, "a list of texts")));
};

const oneLine = (line: string): string => {
  if (CONTROL.test(line.replaceAll("\t", " "))) throw new RangeError(`must hold one line each, not ${shown(line)}`);
  return line;
};

const entriesOf = (value: unknown, what: string): [string, unknown][] => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new RangeError(`must be ${what}, not ${shown(value)}`);
  return Object.entries(value);
};

const readAmounts = (value: unknown): Record<string, number> =>
  Object.fromEntries(
    entriesOf(value, 'a dict of numbers, such as {"S": 6}').map(([name, amount]) => {
      if (!/^[A-Za-z_][\w.-]{0,63}$/.test(name))
        throw new RangeError(`${shown(name)} cannot name a resource: use letters, digits, _ . and -`);
      if (typeof amount !== "number" || !Number.isFinite(amount) || amount < 0)
        throw new RangeError(`${name} must be a number that is not negative, not ${shown(amount)}`);
      return [name, amount];
    }),
  );

const readTexts = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    entriesOf(value, "a dict of texts, keyed by Dask's configuration keys").map(([key, text]) => {
      if (!/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(key) || key.includes("__"))
        throw new RangeError(`${shown(key)} is not a configuration key such as distributed.worker.memory.target`);
      if (typeof text !== "string")
        throw new RangeError(`the value of ${key} must be text, such as "0.8", not ${shown(text)}`);
      return [key, textIn(text, "text")];
    }),
  );

/** `A-B`; ports from 1 to 65535. */
export const readPortRange = (value: unknown): PortRange => {
  const [matched, from, to] =
    /^\s*(\d{1,5})\s*[-:]\s*(\d{1,5})\s*$/.exec(textIn(value, 'text such as "8000-8099"')) ?? [];
  const range = { from: Number(from), to: Number(to) };
  if (matched === undefined || range.from < 1 || range.to > 65_535)
    throw new RangeError(`must be A-B with ports from 1 to 65535, not ${shown(value)}`);
  if (range.from > range.to) throw new RangeError(`${shown(value)} ends before it begins`);
  return range;
};

const readWalltime = (value: unknown): string => {
  const text = textIn(value, 'text such as "01:00:00"');
  if (daskSeconds(text) <= 0) throw new RangeError("must be more than nothing");
  return clockText(daskSeconds(text));
};

const READERS: Readonly<Record<ParameterType, (value: unknown) => Value>> = {
  word: readWord,
  size: readSize,
  walltime: readWalltime,
  duration: daskDuration,
  count: readCount,
  flag: readFlag,
  directives: (value) => readList(value, oneLine),
  lines: (value) => readList(value, (line) => line),
  "port-range": readPortRange,
  amounts: readAmounts,
  texts: readTexts,
};

export const readValue = (type: ParameterType, value: unknown): Value => READERS[type](value);
