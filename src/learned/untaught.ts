import { type Group, type Run, groupOf } from "../core/run.ts";
import type { Row } from "../core/ids.ts";

/** Tasks that ended well and have taught nothing yet, in order: columns for each run, since there may be many. */
export interface Untaught {
  /** Returns whether it is the first. */
  add(run: Run, row: Row, took: number, at: number): boolean;
  teachAll(): void;
}

interface Ends {
  readonly run: Run;
  readonly rows: Row[];
  readonly took: number[];
  readonly at: number[];
}

export const createUntaught = (
  teach: (run: Run, group: Group, row: Row, took: number, at: number) => void,
): Untaught => {
  let waiting: Ends[] = [];
  let last: Ends | undefined;

  const teachEnds = ({ run, rows, took, at }: Ends): void => {
    let group = run.groups[0]!;
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i]!;
      // the next one is often its neighbour
      if (row < group.first || row >= group.first + group.count) group = groupOf(run.groups, row);
      teach(run, group, row, took[i]!, at[i]!);
    }
  };

  return {
    add: (run, row, took, at) => {
      if (last?.run !== run) waiting.push((last = { run, rows: [], took: [], at: [] }));
      last.rows.push(row);
      last.took.push(took);
      last.at.push(at);
      return waiting.length === 1 && last.rows.length === 1;
    },
    teachAll: () => {
      if (last === undefined) return;
      const all = waiting;
      [waiting, last] = [[], undefined];
      for (const ends of all) teachEnds(ends);
    },
  };
};
