import { Task } from "./states.ts";
import type { AgentId, Row } from "./ids.ts";

/**
 * The rows of a run's tasks, one column per fact, in pages that are made when the first of their rows is touched.
 * A million waiting tasks hold no page at all; a touched row costs at most ROW_BYTES. Columns about output are made when the
 * first of their page's tasks has some: until then all pages share one that says there is none.
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

/** What the columns say that a page has only when it needs them. */
const QUIET = { outAt: -1, outBytes: 0, errBytes: 0 } as const;

type QuietName = keyof typeof QUIET;

const isQuiet = (name: string): name is QuietName => Object.hasOwn(QUIET, name);

export const ROW_BYTES = COLUMNS.reduce((sum, [, , bytes]) => sum + bytes, 0);

export const Flag = {
  /** The user, or max-fails, asked for its end while an agent had it. */
  CANCEL: 1,
  /** A handler for a failure that did not happen. */
  UNNEEDED: 2,
  /** It is DONE without having run: an earlier run has done it. */
  SKIPPED: 4,
  /** It was skipped for its outputs, and not because the run resumes another. */
  UP_TO_DATE: 8,
  /** It was skipped and `retry` has reopened it: it runs, whatever its outputs say. */
  MUST_RUN: 16,
  /** It was lost with its spawner: it gets its own from now on, so that it takes no other task with it. */
  ALONE: 64,
} as const;

export interface Page {
  /** Epoch milliseconds; 0 means not yet. */
  readonly assigned: Float64Array;
  readonly started: Float64Array;
  readonly finished: Float64Array;
  /** Where the last chunk of output starts in the agent's stream; -1 means no output. These three change with `setOutput`. */
  readonly outAt: ArrayLike<number>;
  readonly outBytes: ArrayLike<number>;
  readonly errBytes: ArrayLike<number>;
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

const sharedColumns = new Map<string, Float64Array>();
const isShared = new WeakSet<object>();

/** The column of all pages of this size that need none of their own. Nobody writes to it. */
const sharedColumn = (name: QuietName, rows: number): Float64Array => {
  const key = `${name} ${rows}`;
  let column = sharedColumns.get(key);
  if (column === undefined) {
    sharedColumns.set(key, (column = new Float64Array(rows).fill(QUIET[name])));
    isShared.add(column);
  }
  return column;
};

const setQuiet = (page: Page, name: QuietName, slot: number, value: number): void => {
  let own = page[name] as Float64Array;
  if (isShared.has(own)) (page as Record<QuietName, unknown>)[name] = own = own.slice();
  own[slot] = value;
};

/** Notes where a task's output is, and how much it is. Columns are compared by name: many tasks write nothing. */
export const setOutput = (page: Page, slot: number, outAt: number, outBytes = 0, errBytes = 0): void => {
  if (page.outAt[slot] !== outAt) setQuiet(page, "outAt", slot, outAt);
  if (page.outBytes[slot] !== outBytes) setQuiet(page, "outBytes", slot, outBytes);
  if (page.errBytes[slot] !== errBytes) setQuiet(page, "errBytes", slot, errBytes);
};

const QUIET_BYTES = COLUMNS.reduce((sum, [name, , bytes]) => (isQuiet(name) ? sum + bytes : sum), 0);

const newPage = (rows: number): Page => {
  const buffer = new ArrayBuffer((ROW_BYTES - QUIET_BYTES) * rows);
  const page: Record<string, unknown> = {};
  let offset = 0;
  for (const [name, View, bytes] of COLUMNS) {
    if (isQuiet(name)) page[name] = sharedColumn(name, rows);
    else {
      page[name] = new View(buffer, offset, rows);
      offset += bytes * rows;
    }
  }
  return page as unknown as Page;
};

/** All columns of a page one after the other, as snapshots hold them. */
export const bytesOfPage = (page: Page): Uint8Array => {
  const all = new Uint8Array(ROW_BYTES * page.state.length);
  let offset = 0;
  for (const [name] of COLUMNS) {
    const { buffer, byteOffset, byteLength } = page[name] as Uint8Array;
    all.set(new Uint8Array(buffer, byteOffset, byteLength), offset);
    offset += byteLength;
  }
  return all;
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

/** Rare, and apart from `touch`: what is inlined there is compiled anew with each run, whose states are its own. */
const makePage = (table: Table, index: number): Page => {
  const page = newPage(table.pageRows);
  page.exit.fill(-1);
  const first = index * table.pageRows;
  const end = Math.min(table.total, first + table.pageRows);
  for (let each = first; each < end; each += 1) page.state[each - first] = table.baseState(each);
  table.pages[index] = page;
  return page;
};

/** The page of a row, made on first use with every row in its group's base state. */
export const touch = (table: Table, row: Row): Page => {
  const index = Math.floor(row / table.pageRows);
  return table.pages[index] ?? makePage(table, index);
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
  const rows = table.pageRows;
  const page = newPage(rows);
  let offset = 0;
  for (const [name, , width] of COLUMNS) {
    const part = new Uint8Array(bytes.subarray(offset, offset + width * rows));
    offset += width * rows;
    if (isQuiet(name)) {
      const column = new Float64Array(part.buffer, part.byteOffset, rows);
      if (column.some((value) => value !== QUIET[name])) (page as Record<QuietName, unknown>)[name] = column;
    } else {
      const { buffer, byteOffset, byteLength } = page[name] as Uint8Array;
      new Uint8Array(buffer, byteOffset, byteLength).set(part);
    }
  }
  table.pages[index] = page;
};

/** Whether no agent has the task and nothing keeps it from being placed. */
export const isReady = (state: number, agent: AgentId): boolean =>
  state === Task.PENDING || (state === Task.SCHEDULING && agent === 0);
