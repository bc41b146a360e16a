import { quoted } from "./quantities.ts";

/** One item in use. `text` is the value of `{item}` and SLIPWAY_ITEM: strings unchanged, other JSON as compact JSON. */
export interface Item {
  readonly text: string;
  readonly json: boolean;
  /** What separates its columns. */
  readonly colsep?: string;
  /** Parsed when a field is first needed. */
  value?: unknown;
}

/** An item from its stored text: the line itself, or the JSON text. */
export const itemOf = (stored: string, json: boolean, colsep?: string): Item => {
  if (colsep !== undefined && !json) return { text: stored, json, colsep };
  return json && stored.charCodeAt(0) === 34
    ? { text: JSON.parse(stored) as string, json: false }
    : { text: stored, json };
};

const MAX_ITEM_DEPTH = 100;

const isDeeper = (value: unknown, depth: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1)));

/** How a JSON value is stored. Throws a RangeError when it is nested too deeply. */
export const storedJson = (value: unknown): string => {
  if (isDeeper(value, MAX_ITEM_DEPTH))
    throw new RangeError(`an item is nested more than ${MAX_ITEM_DEPTH} levels deep`);
  return JSON.stringify(value);
};

/** `{item.a.b}`: own keys of objects, positions of arrays and columns. Throws a RangeError that names the missing field. */
export const fieldOf = (item: Item, path: readonly string[]): string => {
  if (item.value === undefined && item.json) item.value = JSON.parse(item.text);
  if (item.value === undefined && item.colsep !== undefined) item.value = item.text.split(item.colsep);
  let value: unknown = item.value;
  for (const key of path) {
    if (
      typeof value !== "object" ||
      value === null ||
      !Object.hasOwn(value, key) ||
      (Array.isArray(value) && key === "length")
    ) {
      throw new RangeError(`no field '${path.join(".")}' in ${quoted(item.text)}`);
    }
    value = (value as Record<string, unknown>)[key];
  }
  return typeof value === "string" ? value : JSON.stringify(value);
};

/** The longest item: it must fit into one environment variable (the system allows 128 KiB for `NAME=value`). */
export const MAX_ITEM_BYTES = 131_000;

/** Matches only surrogates without their pair. */
const UNPAIRED = /\p{Surrogate}/u;
const MAX_DEPTH = 1000;

const hasBadText = (value: unknown, depth = 0): boolean =>
  typeof value === "string"
    ? value.includes("\0") || UNPAIRED.test(value)
    : typeof value === "object" &&
      value !== null &&
      (depth > MAX_DEPTH ||
        Object.entries(value).some(([key, inner]) => hasBadText(key) || hasBadText(inner, depth + 1)));

/** Why a stored text cannot be an item; undefined when it can. For JSON, a text that JSON.stringify made. */
export const itemProblem = (stored: string, json: boolean): string | undefined => {
  if (stored.length * 3 > MAX_ITEM_BYTES && Buffer.byteLength(stored) > MAX_ITEM_BYTES) {
    return `is longer than ${MAX_ITEM_BYTES} bytes`;
  }
  if (stored.includes("\0")) return "contains a NUL character";
  if (UNPAIRED.test(stored)) return "is not valid text (an unpaired surrogate)";
  // JSON.stringify writes \u only for control characters and unpaired surrogates.
  if (json && stored.includes(String.raw`\u`) && hasBadText(JSON.parse(stored))) {
    return "contains a NUL character or an unpaired surrogate";
  }
  return undefined;
};
