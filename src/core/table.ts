import { Task } from "./states.ts";
import type { AgentId, Row } from "./ids.ts";

/**
 * The rows of a run's tasks, one column per fact, in pages that are made when the first of their rows is touched.
 * A million waiting tasks hold no page at all; a touched row costs ROW_BYTES.
 */

const PAGE_BITS = 13;
const PAGE_ROWS = 1 << PAGE_BITS;

/** Bytes per row of every column, widest first so that each column is aligned for any page size that is a multiple of 8. */
const COLUMNS = [
  ["assigned", Float64Array, 8],
  ["started", Float64Array, 8],
  ["finished", Float64Array, 8],
  ["outAt", Float64Array, 8],
  ["outBytes", Float64Array, 8],
  ["errBytes", Float64Array, 8],
  ["agent", Uint32Array, 4],
  ["reason", Uint32Array, 4],
  ["attempt", Uint16Array, 2],
  ["fails", Uint16Array, 2],
  ["exit", Int16Array, 2],
  ["state", Uint8Array, 1],
  ["flags", Uint8Array, 1],
  ["losses", Uint8Array, 1],
  ["signal", Uint8Array, 1],
] as const;

/** The most losses the column can hold; a task that is lost once more is given up, whatever the limit. */
export const MOST_LOSSES = 255;

export const ROW_BYTES = COLUMNS.reduce((sum, [, , bytes]) => sum + bytes, 0);

export const Flag = {
  /** The user, or max-fails, asked for its end while an agent had it. */
  CANCEL: 1,
  /** A handler for a failure that did not happen. */
  UNNEEDED: 2,
  /** It is DONE without having run: an earlier run has done it. */
  SKIPPED: 4,
  /** It was lost with its spawner: it gets its own from now on, so that it takes no other task with it. */
  ALONE: 64,
} as const;

export interface Page {
  readonly buffer: ArrayBuffer;
  /** Epoch milliseconds; 0 means not yet. */
  readonly assigned: Float64Array;
  readonly started: Float64Array;
  readonly finished: Float64Array;
  /** Where the last chunk of output starts in the agent's stream; -1 means no output. */
  readonly outAt: Float64Array;
  readonly outBytes: Float64Array;
  readonly errBytes: Float64Array;
  /** The agent that has, or last had, the task; 0 means none. */
  readonly agent: Uint32Array;
  /** Index into the run's reason texts; 0 means none. */
  readonly reason: Uint32Array;
  readonly attempt: Uint16Array;
  readonly fails: Uint16Array;
  /** Exit code, or -1. */
  readonly exit: Int16Array;
  readonly state: Uint8Array;
  readonly flags: Uint8Array;
  readonly losses: Uint8Array;
  readonly signal: Uint8Array;
}

const viewPage = (buffer: ArrayBuffer, rows: number): Page => {
  const page: Record<string, unknown> = { buffer };
  let offset = 0;
  for (const [name, View, bytes] of COLUMNS) {
    page[name] = new View(buffer, offset, rows);
    offset += bytes * rows;
  }
  return page as unknown as Page;
};

export interface Table {
  readonly total: number;
  readonly pageRows: number;
  readonly pages: (Page | undefined)[];
  /** The state of rows whose page does not exist yet. */
  readonly baseState: (row: Row) => number;
}

export const pageRowsFor = (total: number): number => {
  let rows = 8;
  while (rows < total && rows < PAGE_ROWS) rows *= 2;
  return rows;
};

export const createTable = (total: number, baseState: (row: Row) => number): Table => {
  const pageRows = pageRowsFor(total);
  return { total, pageRows, pages: Array.from({ length: Math.ceil(total / pageRows) }), baseState };
};

/** The page of a row, made on first use with every row in its group's base state. */
export const touch = (table: Table, row: Row): Page => {
  const index = Math.floor(row / table.pageRows);
  const known = table.pages[index];
  if (known !== undefined) return known;
  const page = viewPage(new ArrayBuffer(ROW_BYTES * table.pageRows), table.pageRows);
  page.outAt.fill(-1);
  page.exit.fill(-1);
  const first = index * table.pageRows;
  const end = Math.min(table.total, first + table.pageRows);
  for (let each = first; each < end; each += 1) page.state[each - first] = table.baseState(each);
  table.pages[index] = page;
  return page;
};

/** The page of a row if it was ever touched. */
export const peek = (table: Table, row: Row): Page | undefined => table.pages[Math.floor(row / table.pageRows)];

/** Where the range at `ranges[i]`, `[from, count, …]`, ends: never beyond the table's end, whatever it says. */
export const rangeEnd = (table: Table, ranges: readonly number[], i: number): number =>
  Math.min(table.total, ranges[i]! + ranges[i + 1]!);

export const stateOf = (table: Table, row: Row): number => {
  const page = peek(table, row);
  return page === undefined ? table.baseState(row) : page.state[row % table.pageRows]!;
};

/** Restores a page from a snapshot. The bytes are copied, so that the source may be a shared buffer. */
export const restorePage = (table: Table, index: number, bytes: Uint8Array): void => {
  if (bytes.byteLength !== ROW_BYTES * table.pageRows) throw new RangeError("a page of the snapshot has another size");
  const buffer = new ArrayBuffer(bytes.byteLength);
  new Uint8Array(buffer).set(bytes);
  table.pages[index] = viewPage(buffer, table.pageRows);
};

/** Whether no agent has the task and nothing keeps it from being placed. */
export const isReady = (state: number, agent: AgentId): boolean =>
  state === Task.PENDING || (state === Task.SCHEDULING && agent === 0);
