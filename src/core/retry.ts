import type { RunRetried } from "./events.ts";
import { forgetLater } from "./later-shapes.ts";
import { reopen, reopenGroup } from "./moves.ts";
import { openRun } from "./outcomes.ts";
import { type Run, groupOf, isFinishedRun } from "./run.ts";
import type { Apply } from "./state.ts";
import { Task } from "./states.ts";
import { Flag, touch } from "./table.ts";

/**
 * `retry` reopens final tasks: the failed ones and those cancelled for their sake, or all. Their old outcome stays in
 * the history, their own retries and losses count from zero, and dependencies are evaluated again.
 */
export const applyRetried: Apply<RunRetried> = (state, event, effects) => {
  const run = state.runs.get(event.run);
  if (run === undefined || !isFinishedRun(run)) return;
  run.finished = 0;
  run.canceled = "";
  for (let row = 0; row < run.total; row += 1) {
    const page = touch(run.table, row);
    const slot = row % run.table.pageRows;
    if (event.which === "failed" && page.state[slot] === Task.DONE) continue;
    const unneeded = (page.flags[slot]! & Flag.UNNEEDED) !== 0;
    if (!reopen(state, run, row, false, Task.NEW)) continue;
    if (unneeded) run.unneeded -= 1;
    page.flags[slot] = 0;
    page.fails[slot] = 0;
    page.losses[slot] = 0;
    forgetLater(groupOf(run.groups, row), row);
  }
  recount(run);
  // openRun links it again to the runs it waits for: an old link would count the dependency twice
  for (const [other, waiting] of state.runDependents)
    state.runDependents.set(
      other,
      waiting.filter((each) => each.run !== run.id),
    );
  openRun(state, run, event.at, effects);
};

/** Sets every group's counters from its rows, with all its dependencies open: openRun settles those that have ended. */
const recount = (run: Run): void => {
  for (const group of run.groups) {
    group.done = 0;
    group.failed = 0;
    group.canceled = 0;
    reopenGroup(group);
    for (let row = group.first; row < group.first + group.count; row += 1)
      if (touch(run.table, row).state[row % run.table.pageRows] === Task.DONE) group.done += 1;
    group.waits = group.spec.after.length;
  }
};
