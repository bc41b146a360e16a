import { type Group, type Run, groupOf } from "../core/run.ts";
import type { Row } from "../core/ids.ts";

/** Tasks that ended well and have taught nothing yet, in order: columns, since there may be many. */
export interface Untaught {
  /** Returns whether it is the first. */
  add(run: Run, row: Row, took: number, at: number): boolean;
  teachAll(): void;
}

export const createUntaught = (
  teach: (run: Run, group: Group, row: Row, took: number, at: number) => void,
): Untaught => {
  let [runs, rows, tooks, ats]: [Run[], Row[], number[], number[]] = [[], [], [], []];
  return {
    add: (run, row, took, at) => {
      rows.push(row);
      tooks.push(took);
      ats.push(at);
      return runs.push(run) === 1;
    },
    teachAll: () => {
      if (runs.length === 0) return;
      const [ofRuns, ofRows, took, at] = [runs, rows, tooks, ats];
      [runs, rows, tooks, ats] = [[], [], [], []];
      let group: Group | undefined;
      for (let i = 0; i < ofRuns.length; i += 1) {
        const [run, row] = [ofRuns[i]!, ofRows[i]!];
        // the next one is often its neighbour
        if (group === undefined || run !== ofRuns[i - 1] || row < group.first || row >= group.first + group.count)
          group = groupOf(run.groups, row);
        teach(run, group, row, took[i]!, at[i]!);
      }
    },
  };
};
