import type { Row } from "./ids.ts";
import type { Run } from "./run.ts";

/**
 * The most memory that an attempt had at once, and who saw it; of a task with ranks, the largest of any rank. Where
 * nobody could tell there is none, and it costs nothing.
 */
export interface Peak {
  readonly bytes: number;
  /** One of PeakBy. */
  readonly by: number;
}

/** Who saw it, as the API names them; the index is the number in results, journal and snapshot. */
export const PEAK_SOURCES = [null, "cgroup", "rusage", "watch"] as const;

export const PeakBy = { CGROUP: 1, RUSAGE: 2, WATCH: 3 } as const;

/** Columns count pages of this size, the smallest there are: 32 bits are enough for 16 TiB. */
const PAGE_BYTES = 4096;
const MOST_PAGES = 0xffff_ffff;

export const peakPages = (bytes: number): number => Math.min(MOST_PAGES, Math.ceil(bytes / PAGE_BYTES));

/** Columns of one page of a run's table; made when the first of its rows has a peak. */
export interface PeakPage {
  readonly pages: Uint32Array;
  readonly by: Uint8Array;
}

export const makePeakPage = (rows: number): PeakPage => ({ pages: new Uint32Array(rows), by: new Uint8Array(rows) });

type Rows = Pick<Run, "table" | "peaks">;

/** Of the latest attempt; undefined where nobody could tell. */
export const peakOf = ({ table, peaks }: Rows, row: Row): Peak | undefined => {
  const page = peaks.get(Math.floor(row / table.pageRows));
  const slot = row % table.pageRows;
  if (page === undefined || page.by[slot] === 0) return undefined;
  return { bytes: page.pages[slot]! * PAGE_BYTES, by: page.by[slot]! };
};

/** The larger counts: ranks on other agents may have reported before. */
export const raisePeak = ({ table, peaks }: Rows, row: Row, pages: number, by: number): void => {
  if (pages === 0 || by === 0) return;
  const index = Math.floor(row / table.pageRows);
  const slot = row % table.pageRows;
  let page = peaks.get(index);
  if (page === undefined) peaks.set(index, (page = makePeakPage(table.pageRows)));
  if (pages <= page.pages[slot]!) return;
  page.pages[slot] = pages;
  page.by[slot] = by;
};

/** The row is about to begin another attempt. */
export const clearPeak = ({ table, peaks }: Rows, row: Row): void => {
  const page = peaks.get(Math.floor(row / table.pageRows));
  if (page === undefined) return;
  page.pages[row % table.pageRows] = 0;
  page.by[row % table.pageRows] = 0;
};

/** The larger of two; where one is unknown, the other. */
export const largerPeak = (a: Peak | undefined, b: Peak | undefined): Peak | undefined =>
  a === undefined || (b !== undefined && b.bytes > a.bytes) ? b : a;
