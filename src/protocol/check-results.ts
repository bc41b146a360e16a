import { MOST_TIME, cutText } from "../core/bounds.ts";
import { MAX_RESULTS, type PackedColumn, type PackedColumns, packResults, unpackResults } from "../core/columns.ts";
import { type Column, Ending, NO_CODE, type ResultColumns } from "../core/events.ts";
import { PEAK_SOURCES } from "../core/peak.ts";
import { type Shape, either, listOf, object, optional, text, whole, wrong } from "../core/shapes.ts";
import type { Results } from "./messages.ts";

/**
 * Results as an agent sent them, or left them in a spool: every column has the right length, every number is within its
 * bounds. Anything wrong throws a RangeError that names the field.
 */
export interface CheckedResults {
  /** Packed again, so that nothing but results is left in them: the journal keeps these. */
  readonly packed: readonly PackedColumns[];
  readonly parts: readonly ResultColumns[];
}

/** What each value of a column may be. */
interface Bound {
  readonly least: number;
  readonly most: number;
  readonly whole: boolean;
  /** One more allowed value, outside the bounds. */
  readonly or?: number;
}

const SIZE: Bound = { least: 0, most: Number.MAX_SAFE_INTEGER, whole: true };
const TIME: Bound = { least: 0, most: MOST_TIME, whole: false };

const BOUNDS = {
  attempt: { least: 0, most: 0xffff, whole: true },
  ending: { least: 0, most: Math.max(...Object.values(Ending)), whole: true },
  code: { least: -0xff, most: 0x7fff, whole: true, or: NO_CODE },
  started: TIME,
  finished: TIME,
  outAt: { ...SIZE, or: -1 },
  outBytes: SIZE,
  errBytes: SIZE,
} as const satisfies Partial<Record<keyof ResultColumns, Bound>>;

/** Absent where nobody knows one, and from agents of earlier versions. */
const MEASURED = {
  peak: { least: 0, most: 0xffff_ffff, whole: true },
  peakBy: { least: 0, most: PEAK_SOURCES.length - 1, whole: true },
  cpu: { least: 0, most: 0xffff_ffff, whole: true },
  system: { least: 0, most: 0xffff_ffff, whole: true },
  read: { least: 0, most: 0xffff_ffff, whole: true },
  written: { least: 0, most: 0xffff_ffff, whole: true },
} as const satisfies Partial<Record<keyof ResultColumns, Bound>>;

const fits = (value: number, { least, most, whole, or }: Bound): boolean =>
  (value >= least && value <= most && (!whole || Number.isInteger(value))) || value === or;

const checkColumn = (path: string, packed: PackedColumn, column: Column<ArrayLike<number>>, bound: Bound): void => {
  const refuse = (value: number): never => {
    throw new RangeError(wrong(path, value, `a number from ${bound.or ?? bound.least} to ${bound.most}`));
  };
  // check a constant as it came: unpacking has cut it to what its column can hold
  if (typeof packed === "number") return fits(packed, bound) ? undefined : refuse(packed);
  const values = column as ArrayLike<number>;
  for (let i = 0; i < values.length; i += 1) if (!fits(values[i]!, bound)) refuse(values[i]!);
};

const bytes: Shape = (value, path) => (value instanceof Uint8Array ? undefined : wrong(path, value, "bytes"));
const constant: Shape = (value, path) => (typeof value === "number" ? undefined : wrong(path, value, "a number"));
const column = either(constant, bytes);

const detailOf =
  (n: number): Shape =>
  (value, path) => {
    if (!Array.isArray(value) || value.length !== 2) return wrong(path, value, "a pair of index and text");
    return whole(n - 1)(value[0], `${path}[0]`) ?? text(value[1], `${path}[1]`);
  };

const PART = object({
  run: whole(),
  n: whole(MAX_RESULTS, 1),
  from: optional(whole(0xffff_ffff)),
  rows: optional(bytes),
  ...Object.fromEntries(Object.keys(BOUNDS).map((name) => [name, column])),
  ...Object.fromEntries(Object.keys(MEASURED).map((name) => [name, optional(column)])),
});

const refuseIf = (problem: string | undefined): void => {
  if (problem !== undefined) throw new RangeError(problem);
};

const checkPart = (part: PackedColumns, path: string): { packed: PackedColumns; columns: ResultColumns } => {
  refuseIf(PART(part, path) ?? optional(listOf(detailOf(part.n)))(part.details, `${path}.details`));
  if ((part.details?.length ?? 0) > part.n)
    throw new RangeError(`${path}.details has more entries than there are results`);
  let columns: ResultColumns;
  try {
    columns = unpackResults(part);
  } catch (error) {
    throw new RangeError(`${path}: ${(error as Error).message}`, { cause: error });
  }
  for (const name of Object.keys(BOUNDS) as (keyof typeof BOUNDS)[])
    checkColumn(`${path}.${name}`, part[name], columns[name], BOUNDS[name]);
  for (const name of Object.keys(MEASURED) as (keyof typeof MEASURED)[])
    if (part[name] !== undefined) checkColumn(`${path}.${name}`, part[name], columns[name] ?? 0, MEASURED[name]);
  const cut = { ...columns, details: columns.details.map(([i, why]) => [i, cutText(why)] as const) };
  return { packed: packResults(cut), columns: cut };
};

export const checkResults = (message: Results): CheckedResults => {
  const total = message.parts.reduce((sum, part) => sum + ((part as Partial<PackedColumns> | null)?.n ?? 0), 0);
  if (total > MAX_RESULTS) throw new RangeError(`parts hold ${total} results, more than ${MAX_RESULTS}`);
  const checked = message.parts.map((part, nth) => checkPart(part, `parts[${nth}]`));
  return { packed: checked.map(({ packed }) => packed), parts: checked.map(({ columns }) => columns) };
};
