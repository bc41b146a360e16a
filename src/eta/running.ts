import type { Group, Run } from "../core/run.ts";
import { Task, isFinalTask } from "../core/states.ts";
import { peek } from "../core/table.ts";

/** Tasks that run are looked at one by one, up to this many of a group. */
const MOST_RUNNING = 4096;
/** How many tasks of the run are running. */
const runningIn = ({ counts }: Run): number => {
  let sum = 0;
  for (let state: number = Task.EXECUTING; state < Task.DONE; state += 1) sum += counts[state]!;
  return sum;
};

/** For each task of a group that runs: for how many milliseconds it has. */
export const runningOf = (run: Run, group: Group, now: number, most = MOST_RUNNING): number[] => {
  const running: number[] = [];
  const last = Math.min(most, runningIn(run));
  if (last === 0) return running;
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
      if (running.length === last) return running;
    }
    row = pageEnd;
  }
  return running;
};
