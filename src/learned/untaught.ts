import { type Group, type Run, groupOf } from "../core/run.ts";
import type { Row } from "../core/ids.ts";

/** Tasks that ended well and have taught nothing yet, in order: columns, since there may be many. */
export interface Untaught {
  /** Returns whether it is the first. */
  add(run: Run, row: Row, took: number, at: number): boolean;
  teachAll(): void;
}

/** When so many wait, they teach at once: what waits is bounded, and its memory is used again. */
const MOST = 4096;

interface Columns {
  readonly rows: Uint32Array;
  readonly took: Float64Array;
  readonly at: Float64Array;
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

export const createUntaught = (
  teach: (run: Run, group: Group, row: Row, took: number, at: number) => void,
): Untaught => {
  let waiting = newColumns();
  /** What ends while others teach has columns of its own. */
  let spare: Columns | undefined;

  const teachEnds = (run: Run, { rows, took, at }: Columns, from: number, end: number): void => {
    let group = run.groups[0]!;
    for (let i = from; i < end; i += 1) {
      const row = rows[i]!;
      // the next one is often its neighbour
      if (row < group.first || row >= group.first + group.count) group = groupOf(run.groups, row);
      teach(run, group, row, took[i]!, at[i]!);
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
    add: (run, row, took, at) => {
      if (waiting.count === MOST) teachAll();
      const { count, runs, from } = waiting;
      if (runs.at(-1) !== run) {
        runs.push(run);
        from.push(count);
      }
      waiting.rows[count] = row;
      waiting.took[count] = took;
      waiting.at[count] = at;
      waiting.count += 1;
      return count === 0;
    },
    teachAll,
  };
};
