import type { Column, ResultColumns } from "./events.ts";
import { LOST_REASONS, type LostEntry } from "./output-lost.ts";
import type { RunId } from "./ids.ts";

/**
 * Columns on the wire and in the journal. A column whose entries are all equal is one number; rows that count up by
 * one are their first number; everything else is little-endian bytes. A result of an ordinary array task takes about
 * twenty bytes.
 */

type Typed = Uint8Array | Uint16Array | Int16Array | Uint32Array | Float64Array;

/** One column as sent: a constant, or bytes. */
export type PackedColumn = number | Uint8Array;

export interface PackedColumns {
  readonly run: RunId;
  readonly n: number;
  /** The first row if the rows count up by one. */
  readonly from?: number;
  readonly rows?: Uint8Array;
  readonly attempt: PackedColumn;
  readonly ending: PackedColumn;
  readonly code: PackedColumn;
  readonly started: PackedColumn;
  readonly finished: PackedColumn;
  readonly outAt: PackedColumn;
  readonly outBytes: PackedColumn;
  readonly errBytes: PackedColumn;
  readonly details?: readonly (readonly [number, string])[];
  readonly lost?: readonly LostEntry[];
  readonly peak?: PackedColumn;
  readonly peakBy?: PackedColumn;
  readonly cpu?: PackedColumn;
  readonly system?: PackedColumn;
  readonly read?: PackedColumn;
  readonly written?: PackedColumn;
}

/** Messages with more results than this are refused: no sender makes them. */
export const MAX_RESULTS = 1_000_000;

const bytesOf = (column: Typed): Uint8Array => new Uint8Array(column.buffer, column.byteOffset, column.byteLength);

/** A column's value for the task at this position. */
export const valueAt = (column: Column<Typed>, i: number): number => (typeof column === "number" ? column : column[i]!);

const pack = (column: Column<Typed>): PackedColumn => {
  if (typeof column === "number") return column;
  const first = column[0]!;
  for (let i = 1; i < column.length; i += 1) if (column[i] !== first) return bytesOf(column);
  return first;
};

/** Where nobody knows a peak, nothing. */
const packPeaks = ({ peak = 0, peakBy = 0 }: ResultColumns): Pick<PackedColumns, "peak" | "peakBy"> => {
  const by = pack(peakBy);
  return by === 0 ? {} : { peak: pack(peak), peakBy: by };
};

const USAGE = ["cpu", "system", "read", "written"] as const;
type UsageName = (typeof USAGE)[number];

/** Where nothing was measured, or none of it used, nothing. */
const packUsage = (columns: ResultColumns): Pick<PackedColumns, UsageName> => {
  const out: { [name in UsageName]?: PackedColumn } = {};
  for (const name of USAGE) {
    const packed = pack(columns[name] ?? 0);
    if (packed !== 0) out[name] = packed;
  }
  return out;
};

const unpackUsage = (packed: PackedColumns, n: number): Pick<ResultColumns, UsageName> => {
  const out: { [name in UsageName]?: Column<Uint32Array> } = {};
  for (const name of USAGE) if (packed[name] !== undefined) out[name] = unpack(constant.u32, packed[name], n);
  return out;
};

export const packResults = (columns: ResultColumns): PackedColumns => {
  const { rows } = columns;
  const n = rows.length;
  let counting = true;
  for (let i = 1; i < n && counting; i += 1) counting = rows[i] === rows[0]! + i;
  return {
    run: columns.run,
    n,
    ...(counting ? { from: rows[0]! } : { rows: bytesOf(rows) }),
    attempt: pack(columns.attempt),
    ending: pack(columns.ending),
    code: pack(columns.code),
    started: pack(columns.started),
    finished: pack(columns.finished),
    outAt: pack(columns.outAt),
    outBytes: pack(columns.outBytes),
    errBytes: pack(columns.errBytes),
    ...(columns.details.length > 0 ? { details: columns.details } : {}),
    ...(columns.lost === undefined || columns.lost.length === 0 ? {} : { lost: columns.lost }),
    ...packPeaks(columns),
    ...packUsage(columns),
  };
};

interface View<T extends Typed> {
  new (length: number): T;
  new (buffer: ArrayBuffer): T;
  readonly BYTES_PER_ELEMENT: number;
}

const unpackRows = <T extends Typed>(View: View<T>, column: PackedColumn | undefined, n: number): T => {
  if (!(column instanceof Uint8Array) || column.byteLength !== n * View.BYTES_PER_ELEMENT)
    throw new RangeError("a column has another length than its message says");
  // a copy, because the source is a slice of a frame at any alignment
  const copy = new ArrayBuffer(column.byteLength);
  new Uint8Array(copy).set(column);
  return new View(copy);
};

/** A constant stays one, converted to a number that such a column can hold. */
const constant = {
  u8: new Uint8Array(1),
  u16: new Uint16Array(1),
  i16: new Int16Array(1),
  u32: new Uint32Array(1),
  f64: new Float64Array(1),
};

const unpack = <T extends Typed>(one: T, column: PackedColumn | undefined, n: number): Column<T> => {
  if (typeof column !== "number") return unpackRows(one.constructor as unknown as View<T>, column, n);
  one[0] = column;
  return one[0]!;
};

const isBytes = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** The output that was not kept; throws a RangeError on anything malformed. */
const unpackLost = (lost: unknown, n: number): readonly LostEntry[] => {
  const entries: readonly unknown[] = Array.isArray(lost) && lost.length <= n ? lost : [undefined];
  for (const entry of entries) {
    const [index, stdout, stderr, reason] = Array.isArray(entry) ? (entry as unknown[]) : [];
    const known = isBytes(reason) && (reason as number) < LOST_REASONS.length;
    if (!isBytes(index) || (index as number) >= n || !isBytes(stdout) || !isBytes(stderr) || !known)
      throw new RangeError("lost output of an impossible kind");
  }
  return entries as readonly LostEntry[];
};

/** The inverse of packResults; throws a RangeError on anything malformed. */
export const unpackResults = (packed: PackedColumns): ResultColumns => {
  const { n, from } = packed;
  if (!Number.isInteger(n) || n < 1 || n > MAX_RESULTS || !Number.isInteger(packed.run))
    throw new RangeError("results of an impossible number");
  let rows: Uint32Array;
  if (from === undefined) rows = unpackRows(Uint32Array, packed.rows, n);
  else {
    if (!Number.isInteger(from) || from < 0 || from + n > 0xffff_ffff)
      throw new RangeError("results of an impossible row");
    rows = new Uint32Array(n);
    for (let i = 0; i < n; i += 1) rows[i] = from + i;
  }
  return {
    run: packed.run,
    rows,
    attempt: unpack(constant.u16, packed.attempt, n),
    ending: unpack(constant.u8, packed.ending, n),
    code: unpack(constant.i16, packed.code, n),
    started: unpack(constant.f64, packed.started, n),
    finished: unpack(constant.f64, packed.finished, n),
    outAt: unpack(constant.f64, packed.outAt, n),
    outBytes: unpack(constant.f64, packed.outBytes, n),
    errBytes: unpack(constant.f64, packed.errBytes, n),
    details: packed.details ?? [],
    ...(packed.lost === undefined ? {} : { lost: unpackLost(packed.lost, n) }),
    ...(packed.peak === undefined && packed.peakBy === undefined
      ? {}
      : { peak: unpack(constant.u32, packed.peak, n), peakBy: unpack(constant.u8, packed.peakBy, n) }),
    ...unpackUsage(packed, n),
  };
};
