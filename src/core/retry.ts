import type { RunRetried } from "./events.ts";
import { forgetLater, setLaterShape } from "./later-shapes.ts";
import { reopen, reopenGroup } from "./moves.ts";
import { openRun } from "./outcomes.ts";
import { giveSet } from "./retry-set.ts";
import { type Group, type Run, groupOf, isFinishedRun } from "./run.ts";
import type { Apply } from "./state.ts";
import { Task } from "./states.ts";
import { Flag, rangeEnd, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * `retry` reopens final tasks: the failed ones and those cancelled for their sake, all, or the rows that were chosen.
 * Their old outcome stays in the history, their own retries and losses count from zero, and dependencies are evaluated
 * again: what the others have come to counts as it stands.
 */
export const applyRetried: Apply<RunRetried> = (state, event, effects) => {
  const run = state.runs.get(event.run);
  if (run === undefined || !isFinishedRun(run)) return;
  run.idle += Math.max(0, event.at - run.finished);
  run.finished = 0;
  state.live.add(run);
  run.canceled = "";
  const given = new Map<Group, Row[]>();
  for (const row of rowsOf(run, event)) {
    const page = touch(run.table, row);
    const slot = row % run.table.pageRows;
    if (event.rows === undefined && event.which === "failed" && page.state[slot] === Task.DONE) continue;
    const unneeded = (page.flags[slot]! & Flag.UNNEEDED) !== 0;
    const skipped = (page.flags[slot]! & Flag.SKIPPED) !== 0;
    if (!reopen(state, run, row, false, Task.NEW)) continue;
    if (unneeded) run.unneeded -= 1;
    if (skipped) run.skipped -= 1;
    page.flags[slot] = skipped ? Flag.MUST_RUN : 0;
    page.fails[slot] = 0;
    page.losses[slot] = 0;
    const group = groupOf(run.groups, row);
    forgetLater(group, row);
    if (event.set === undefined) continue;
    const rows = given.get(group);
    if (rows === undefined) given.set(group, [row]);
    else rows.push(row);
  }
  for (const [group, rows] of given) {
    giveSet(group, rows, event.set!);
    for (const row of rows) setLaterShape(run, group, row);
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

/** Each chosen row once, in order. */
function* rowsOf({ table }: Run, { rows = [0, table.total] }: RunRetried): Generator<Row> {
  let next = 0;
  for (let i = 0; i < rows.length; i += 2)
    for (let row = Math.max(next, rows[i]!), end = rangeEnd(table, rows, i); row < end; row += 1) {
      next = row + 1;
      yield row;
    }
}

/** Sets every group's counters from its rows, with all its dependencies open: openRun settles those that have ended. */
const recount = (run: Run): void => {
  for (const group of run.groups) {
    group.done = 0;
    group.failed = 0;
    group.canceled = 0;
    reopenGroup(group);
    for (let row = group.first; row < group.first + group.count; row += 1) {
      const page = touch(run.table, row);
      const slot = row % run.table.pageRows;
      const now = page.state[slot]!;
      if (now === Task.DONE || (now === Task.CANCELED && (page.flags[slot]! & Flag.UNNEEDED) !== 0)) group.done += 1;
      else if (now === Task.FAILED) group.failed += 1;
      else if (now === Task.CANCELED) group.canceled += 1;
    }
    group.waits = group.spec.after.length - group.links.length;
  }
};
