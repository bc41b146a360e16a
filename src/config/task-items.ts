import { resolve } from "node:path";
import { arrayValues, itemProblem, parseArray, storedJson } from "../core/items.ts";
import { type Matrix, matrixItems } from "../core/matrix.ts";
import { quoted } from "../core/quantities.ts";
import type { ItemSource } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import type { EachInput } from "./run-schema.ts";
import { badValue, parsed, type Path, type Place, type Source } from "./source.ts";
import { readMatrix } from "./task-matrix.ts";
import { checkText, type ItemKind } from "./text-rules.ts";

/** What must be read for a group of kind `list`, by whoever submits or receives it. */
export type ItemsInput =
  /** A file for the client to stream; `-` is standard input. */
  | { readonly kind: "lines" | "json"; readonly path: string; readonly place: Place }
  /** Stored texts (JSON texts when `json`), possibly made on the fly. */
  | { readonly kind: "values"; readonly json: boolean; readonly count: number; readonly values: Iterable<string> }
  /** They follow in the request. */
  | { readonly kind: "stream"; readonly json: boolean };

export interface TaskItems {
  readonly items: ItemSource;
  readonly kind: ItemKind;
  readonly input?: ItemsInput;
  /** What separates the columns of its lines. */
  readonly colsep?: string;
  /** The array's own numbers, when it is one range. */
  readonly numbering?: { readonly start: number; readonly step: number };
}

const ONE: TaskItems = { items: { kind: "one" }, kind: "none" };

/** Counts of lists that are still to be read are 0 until then. */
const listOf = (input: ItemsInput, colsep?: string): TaskItems => ({
  items: { kind: "list", count: input.kind === "values" ? input.count : 0 },
  kind: ("json" in input ? input.json : input.kind === "json") ? "json" : colsep === undefined ? "plain" : "columns",
  input,
  ...(colsep === undefined ? {} : { colsep }),
});

const isScalar = (value: unknown): boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

const readValues = (source: Source, path: Path, values: readonly unknown[]): TaskItems => {
  if (values.length === 0) badValue(source, path, "has no items", "Write at least one, or remove the task.");
  const json = !values.every(isScalar);
  const stored = values.map((value, i) => {
    const text = json ? parsed(source, [...path, i], () => storedJson(value)) : String(value);
    const problem = itemProblem(text, json);
    return problem === undefined ? text : badValue(source, [...path, i], `the item ${problem}`);
  });
  return listOf({ kind: "values", json, count: stored.length, values: stored });
};

const readArray = (source: Source, path: Path, text: string | number, limit: number, perItem: boolean): TaskItems => {
  const array = parsed(source, path, () => parseArray(text));
  if (array.count > limit) {
    throw new SlipwayError("too-many-tasks", { ...source.locate(path), count: array.count, limit });
  }
  const [range] = array.ranges;
  const single = array.ranges.length === 1;
  const own = single ? { numbering: { start: range!.from, step: range!.step } } : {};
  if (single && !perItem) return { items: { kind: "range", ...range! }, kind: "plain", ...own };
  const values: Iterable<string> = { [Symbol.iterator]: () => arrayValues(array) };
  return { ...listOf({ kind: "values", json: false, count: array.count, values }), ...own };
};

/** A product is computed, whatever its size, unless amounts depend on its items. */
const matrixOf = (matrix: Matrix, perItem: boolean): TaskItems => {
  const kind = { keys: matrix.axes.map(({ name }) => name) };
  if (!perItem) return { items: matrix, kind };
  const values: Iterable<string> = { [Symbol.iterator]: () => matrixItems(matrix) };
  return { ...listOf({ kind: "values", json: true, count: matrix.count, values }), kind };
};

/** `\\t`, typed at a shell or unquoted in a file, is a tab. */
const readColsep = (source: Source, path: Path, each: EachInput): string | undefined => {
  if (each.colsep === undefined) return undefined;
  const inner = [...path, "colsep"];
  if (each.lines === undefined && each.stream === undefined)
    badValue(source, inner, "goes with lines", 'Write each: {lines: FILE, colsep: ","}.');
  if (each.stream === "json") badValue(source, inner, "goes with lines, not with JSON");
  const text = each.colsep.replaceAll(String.raw`\t`, "\t");
  checkText(source, inner, text);
  if (text === "" || text.length > 100 || /[\r\n]/.test(text))
    badValue(
      source,
      inner,
      "must be 1 to 100 characters without line breaks",
      "Write what stands between two columns, such as a comma.",
    );
  return text;
};

/**
 * Reads `each`. A range stays a range, whatever its length; `perItem` says that amounts depend on the item, which needs a
 * row for each. Throws `too-many-tasks` before anything is allocated.
 */
export const readEach = (
  source: Source,
  path: Path,
  each: EachInput | undefined,
  context: { readonly cwd: string; readonly limit: number; readonly perItem: boolean },
): TaskItems => {
  if (each === undefined) return ONE;
  const given = Object.keys(each).filter((key) => key !== "colsep" && each[key as keyof EachInput] !== undefined);
  if (given.length !== 1) {
    const detail = given.length === 0 ? "is empty" : `has both ${given.join(" and ")}`;
    badValue(source, path, `${detail}; it takes one of array, lines, json, values, matrix`);
  }
  const key = given[0] as keyof EachInput;
  const inner = [...path, key];
  const colsep = readColsep(source, path, each);
  if (each.matrix !== undefined)
    return matrixOf(readMatrix(source, inner, each.matrix, context.limit), context.perItem);
  if (each.array !== undefined) return readArray(source, inner, each.array, context.limit, context.perItem);
  if (each.values !== undefined) return readValues(source, inner, each.values);
  if (each.stream !== undefined) return listOf({ kind: "stream", json: each.stream === "json" }, colsep);
  const file = each.lines ?? each.json!;
  checkText(source, inner, file);
  if (file === "") badValue(source, inner, `${quoted(file)} is not a file`);
  const input = {
    kind: key as "lines" | "json",
    path: file === "-" ? file : resolve(context.cwd, file),
    place: source.locate(inner),
  };
  return listOf(input, colsep);
};
