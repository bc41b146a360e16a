import type { Group, Run } from "../core/run.ts";
import { Task, isFinalTask } from "../core/states.ts";
import { peek } from "../core/table.ts";

/** Tasks that run are looked at one by one, up to this many of a group. */
const MOST_RUNNING = 4096;
/** For each task of a group that runs: for how many milliseconds it has. */
export const runningOf = (run: Run, group: Group, now: number, most = MOST_RUNNING): number[] => {
  const running: number[] = [];
  const { table } = run;
  const end = group.first + group.count;
  for (let row = group.first; row < end;) {
    const page = peek(table, row);
    const pageEnd = Math.min(end, (Math.floor(row / table.pageRows) + 1) * table.pageRows);
    for (; page !== undefined && row < pageEnd; row += 1) {
      const slot = row % table.pageRows;
      const state = page.state[slot]!;
      if (state < Task.EXECUTING || isFinalTask(state)) continue;
      running.push(Math.max(0, now - page.started[slot]!));
      if (running.length === most) return running;
    }
    row = pageEnd;
  }
  return running;
};
