import { advance } from "./moves.ts";
import { type Run, groupOf } from "./run.ts";
import type { State } from "./state.ts";
import { Task } from "./states.ts";
import { Flag, peek, rangeEnd, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * Tasks that need not run, because an earlier run has done them: they are DONE from the beginning, without an attempt.
 * Which they are was decided before the run was committed, and is part of that event.
 */
export const skipRows = (state: Pick<State, "refused">, run: Run, ranges: readonly number[], at: number): void => {
  for (let i = 0; i < ranges.length; i += 2)
    for (let row = ranges[i]!, end = rangeEnd(run.table, ranges, i); row < end; row += 1) {
      const page = touch(run.table, row);
      const slot = row % run.table.pageRows;
      if (page.state[slot] !== Task.NEW || !advance(state, run, row, Task.DONE)) continue;
      page.flags[slot]! |= Flag.SKIPPED;
      page.finished[slot] = at;
      groupOf(run.groups, row).done += 1;
      run.skipped += 1;
    }
};

export const isSkipped = (run: Run, row: Row): boolean =>
  ((peek(run.table, row)?.flags[row % run.table.pageRows] ?? 0) & Flag.SKIPPED) !== 0;
