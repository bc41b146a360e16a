import type { Row } from "./ids.ts";
import type { Run } from "./run.ts";
import { UNIT_MS, cpuUnits } from "./cpu-time.ts";

/**
 * What an attempt used beside memory, as the kernel accounts for its processes when they are waited for (rusage): CPU
 * time, and what they read from storage and wrote to it; of a task with ranks, the sum. What the page cache answered is
 * not read from storage. Where the spawner cannot tell there is none, and it costs nothing.
 */
export interface Usage {
  /** In units of cpu-time.ts, never 0: that says that nobody measured. */
  readonly cpu: number;
  /** The kernel's part of it. */
  readonly system: number;
  /** In blocks. */
  readonly read: number;
  readonly written: number;
}

/** The same as a spawner reports it. */
export interface Used {
  readonly userMs: number;
  readonly systemMs: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
}

/** Storage is read and written in pages: 32 bits are enough for 16 TiB. */
const BLOCK_BYTES = 4096;
export const MOST_UNITS = 0xffff_ffff;

const capped = (value: number): number => Math.min(MOST_UNITS, value);

const blocksOf = (bytes: number): number => (bytes > 0 ? capped(Math.ceil(bytes / BLOCK_BYTES)) : 0);

/** Undefined where nothing was measured. */
export const usageOf = ({ userMs, systemMs, readBytes, writtenBytes }: Used): Usage | undefined => {
  const cpu = cpuUnits(userMs + systemMs);
  if (cpu === 0) return undefined;
  const system = Math.min(cpu, Math.round(Math.max(0, systemMs) / UNIT_MS));
  return { cpu, system, read: blocksOf(readBytes), written: blocksOf(writtenBytes) };
};

export const usedBy = ({ cpu, system, read, written }: Usage): Used => ({
  userMs: (cpu - system) * UNIT_MS,
  systemMs: system * UNIT_MS,
  readBytes: read * BLOCK_BYTES,
  writtenBytes: written * BLOCK_BYTES,
});

export const addUsed = (a: Used | undefined, b: Used | undefined): Used | undefined => {
  if (a === undefined || b === undefined) return a ?? b;
  return {
    userMs: a.userMs + b.userMs,
    systemMs: a.systemMs + b.systemMs,
    readBytes: a.readBytes + b.readBytes,
    writtenBytes: a.writtenBytes + b.writtenBytes,
  };
};

/** Columns of one page of a run's table; the page and all but its first column are made when something is to be kept. */
export interface UsagePage {
  readonly cpu: Uint32Array;
  system?: Uint32Array;
  read?: Uint32Array;
  written?: Uint32Array;
}

export const USAGE_COLUMNS = ["cpu", "system", "read", "written"] as const;
const REST = ["system", "read", "written"] as const;

type Rows = Pick<Run, "table" | "usage">;

/** Of the latest attempt; undefined where nobody could tell. */
export const usageAt = ({ table, usage }: Rows, row: Row): Usage | undefined => {
  const page = usage.get(Math.floor(row / table.pageRows));
  const slot = row % table.pageRows;
  const cpu = page?.cpu[slot] ?? 0;
  if (page === undefined || cpu === 0) return undefined;
  const { system, read, written } = page;
  return { cpu, system: system?.[slot] ?? 0, read: read?.[slot] ?? 0, written: written?.[slot] ?? 0 };
};

const add = (column: Uint32Array, slot: number, value: number): void => {
  column[slot] = capped(column[slot]! + value);
};

/** Adds to what is known of the latest attempt: ranks on other agents may have reported before. */
export const addUsage = (
  { table, usage }: Rows,
  row: Row,
  cpu: number,
  system: number,
  read: number,
  written: number,
): void => {
  if (cpu === 0) return;
  const index = Math.floor(row / table.pageRows);
  const slot = row % table.pageRows;
  let page = usage.get(index);
  if (page === undefined) usage.set(index, (page = { cpu: new Uint32Array(table.pageRows) }));
  add(page.cpu, slot, cpu);
  if (system > 0) add((page.system ??= new Uint32Array(table.pageRows)), slot, system);
  if (read > 0) add((page.read ??= new Uint32Array(table.pageRows)), slot, read);
  if (written > 0) add((page.written ??= new Uint32Array(table.pageRows)), slot, written);
};

/** The row is about to begin another attempt. */
export const clearUsage = ({ table, usage }: Rows, row: Row): void => {
  const page = usage.get(Math.floor(row / table.pageRows));
  if (page === undefined) return;
  const slot = row % table.pageRows;
  page.cpu[slot] = 0;
  for (const name of REST) if (page[name] !== undefined) page[name][slot] = 0;
};
