import type { Run } from "./run.ts";
import type { Row } from "./ids.ts";

/** Output of attempts that was not kept: how much of each stream, and why. Most tasks lose none and cost nothing. */

/** The reasons, as the API names them; the index is the number in results, journal and snapshot. */
export const LOST_REASONS = [null, "output-per-task", "output-per-run", "no-room", "write-failed"] as const;

/** The same for people. */
export const LOST_TEXTS = [
  "",
  "more than limits.output-per-task",
  "more than limits.output-per-run",
  "no room on the disk",
  "its file could not be written",
] as const;

export const lostText = (reason: NonNullable<(typeof LOST_REASONS)[number]>): string =>
  LOST_TEXTS[LOST_REASONS.indexOf(reason)] ?? reason;

export const Lost = { PER_TASK: 1, PER_RUN: 2, NO_ROOM: 3, WRITE_FAILED: 4 } as const;

/** A limit once reached stays reached. */
export const isLimit = (reason: number): boolean => reason === Lost.PER_TASK || reason === Lost.PER_RUN;

export interface OutputLost {
  readonly stdout: number;
  readonly stderr: number;
  /** The reason that came first. */
  readonly reason: number;
}

/** In results: index into the columns, bytes of stdout and of stderr, reason. */
export type LostEntry = readonly [index: number, stdout: number, stderr: number, reason: number];

/** Columns of one page of a run's table; made when the first of its rows loses output. */
export interface LostPage {
  readonly stdout: Float64Array;
  readonly stderr: Float64Array;
  readonly reason: Uint8Array;
}

/** The latest attempts' losses. Those of earlier attempts are in the history. */
export interface LostRows {
  readonly pages: Map<number, LostPage>;
  tasks: number;
  bytes: number;
}

export const noneLost = (): LostRows => ({ pages: new Map(), tasks: 0, bytes: 0 });

export const makeLostPage = (rows: number): LostPage => ({
  stdout: new Float64Array(rows),
  stderr: new Float64Array(rows),
  reason: new Uint8Array(rows),
});

type Rows = Pick<Run, "table" | "lost">;

const placeOf = ({ table, lost }: Rows, row: Row): { page: LostPage | undefined; slot: number; index: number } => {
  const index = Math.floor(row / table.pageRows);
  return { page: lost.pages.get(index), slot: row % table.pageRows, index };
};

export const lostOf = (run: Rows, row: Row): OutputLost | undefined => {
  const { page, slot } = placeOf(run, row);
  if (page === undefined || page.reason[slot] === 0) return undefined;
  return { stdout: page.stdout[slot]!, stderr: page.stderr[slot]!, reason: page.reason[slot]! };
};

/** Adds to what the row has already lost: its ranks on other agents may have reported before. */
export const addLost = (run: Rows, row: Row, { stdout, stderr, reason }: OutputLost): void => {
  if (stdout + stderr <= 0) return;
  const { page: known, slot, index } = placeOf(run, row);
  const page = known ?? makeLostPage(run.table.pageRows);
  if (known === undefined) run.lost.pages.set(index, page);
  if (page.reason[slot] === 0) {
    page.reason[slot] = reason === 0 ? Lost.WRITE_FAILED : reason;
    run.lost.tasks += 1;
  }
  page.stdout[slot]! += stdout;
  page.stderr[slot]! += stderr;
  run.lost.bytes += stdout + stderr;
};

/** The row is about to begin another attempt. */
export const clearLost = (run: Rows, row: Row): void => {
  const { page, slot } = placeOf(run, row);
  if (page === undefined || page.reason[slot] === 0) return;
  run.lost.tasks -= 1;
  run.lost.bytes -= page.stdout[slot]! + page.stderr[slot]!;
  page.stdout[slot] = 0;
  page.stderr[slot] = 0;
  page.reason[slot] = 0;
};

/** Counts again from a page of a snapshot. */
export const restoreLostPage = (run: Rows, index: number, page: LostPage): void => {
  run.lost.pages.set(index, page);
  for (let slot = 0; slot < page.reason.length; slot += 1) {
    if (page.reason[slot] === 0) continue;
    run.lost.tasks += 1;
    run.lost.bytes += page.stdout[slot]! + page.stderr[slot]!;
  }
};
