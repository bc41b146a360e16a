import { parseArray } from "../core/items.ts";
import { type Matrix, valuesIn } from "../core/matrix.ts";
import { quoted } from "../core/quantities.ts";
import type { Axis } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import type { EachInput } from "./run-schema.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";
import { checkText } from "./text-rules.ts";

/** Reads `each: {matrix: {seed: 1-10, model: [a, b]}}`. */

/** As `{item.NAME}` can name it. */
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,99}$/;
const MOST_KEYS = 32;

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

const readList = (source: Source, path: Path, name: string, values: readonly unknown[]): Axis => {
  if (values.length === 0) badValue(source, path, "has no values", "Write at least one, or remove the key.");
  const seen = new Set<string>();
  for (const [i, value] of values.entries()) {
    if (!isScalar(value))
      badValue(source, [...path, i], `a value of a matrix must be text or a number, not ${quoted(value)}`);
    const text = checkText(source, [...path, i], String(value));
    if (seen.has(text)) badValue(source, [...path, i], `has the value ${quoted(text)} twice`, "Write each value once.");
    seen.add(text);
  }
  return { name, values: [...seen] };
};

const readRanges = (source: Source, path: Path, name: string, text: string | number): Axis => {
  const { ranges } = parsed(source, path, () => {
    try {
      return parseArray(text);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new RangeError(`${error.message}; other values go into a list: [a, b]`, { cause: error });
    }
  });
  const sorted = ranges.toSorted((a, b) => a.from - b.from);
  const twice = sorted.find((range, i) => {
    const before = sorted[i - 1];
    return before !== undefined && before.from + (before.count - 1) * before.step >= range.from;
  });
  if (twice !== undefined) badValue(source, path, `${quoted(text)} has ranges that overlap`, "Write each number once.");
  return { name, ranges };
};

export const readMatrix = (
  source: Source,
  path: Path,
  matrix: NonNullable<EachInput["matrix"]>,
  limit: number,
): Matrix => {
  const names = Object.keys(matrix);
  if (names.length === 0) badValue(source, path, "has no keys", "Write at least one: {seed: 1-10}.");
  if (names.length > MOST_KEYS) badValue(source, path, `has ${names.length} keys; at most ${MOST_KEYS} are allowed`);
  const axes = names.map((name) => {
    const inner = [...path, name];
    if (!NAME.test(name) || name === "__proto__")
      badValue(
        source,
        inner,
        `${quoted(name)} is not a name for {item.NAME}`,
        "A name has letters, digits, _ and -, and begins with a letter.",
      );
    const value = matrix[name]!;
    return Array.isArray(value) ? readList(source, inner, name, value) : readRanges(source, inner, name, value);
  });
  const count = axes.reduce((product, axis) => product * valuesIn(axis), 1);
  if (count > limit) throw new SlipwayError("too-many-tasks", { ...source.locate(path), count, limit });
  return { kind: "matrix", axes, count };
};
