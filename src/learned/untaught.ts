import { type Group, type Run, groupOf } from "../core/run.ts";
import type { Page } from "../core/table.ts";
import type { Row } from "../core/ids.ts";

/** Tasks that ended well and have taught nothing yet, in order: columns, since there may be many. */
export interface Untaught {
  /** The row lies on this page, and both its times are known. Returns whether it is the first. */
  add(run: Run, row: Row, page: Page): boolean;
  teachAll(): void;
}

/** How long tasks took, and when they ended. One is told by its place among them: numbers of this size cost memory wherever they are handed on. */
export interface Ends {
  readonly took: Float64Array;
  readonly at: Float64Array;
}

/** When so many wait, they teach at once: what waits is bounded, and its memory is used again. */
const MOST = 4096;

interface Columns extends Ends {
  readonly rows: Uint32Array;
  count: number;
  /** Runs, and where the ends of each begin. */
  readonly runs: Run[];
  readonly from: number[];
}

const newColumns = (): Columns => ({
  rows: new Uint32Array(MOST),
  took: new Float64Array(MOST),
  at: new Float64Array(MOST),
  count: 0,
  runs: [],
  from: [],
});

export const createUntaught = (teach: (run: Run, group: Group, row: Row, ends: Ends, i: number) => void): Untaught => {
  let waiting = newColumns();
  /** What ends while others teach has columns of its own. */
  let spare: Columns | undefined;

  const teachEnds = (run: Run, ends: Columns, from: number, end: number): void => {
    let group = run.groups[0]!;
    for (let i = from; i < end; i += 1) {
      const row = ends.rows[i]!;
      // the next one is often its neighbour
      if (row < group.first || row >= group.first + group.count) group = groupOf(run.groups, row);
      teach(run, group, row, ends, i);
    }
  };

  const teachAll = (): void => {
    if (waiting.count === 0) return;
    const all = waiting;
    waiting = spare ?? newColumns();
    spare = undefined;
    for (const [i, run] of all.runs.entries()) teachEnds(run, all, all.from[i]!, all.from[i + 1] ?? all.count);
    all.count = all.runs.length = all.from.length = 0;
    spare = all;
  };

  return {
    add: (run, row, page) => {
      if (waiting.count === MOST) teachAll();
      const { count, runs, from } = waiting;
      if (runs.at(-1) !== run) {
        runs.push(run);
        from.push(count);
      }
      waiting.rows[count] = row;
      const slot = row % run.table.pageRows;
      const at = page.finished[slot]!;
      waiting.took[count] = at - page.started[slot]!;
      waiting.at[count] = at;
      waiting.count += 1;
      return count === 0;
    },
    teachAll,
  };
};
