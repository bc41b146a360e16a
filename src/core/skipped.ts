import type { InputsSeen, TasksSkipped } from "./events.ts";
import { newMoved, noteRows } from "./moved.ts";
import { advance } from "./moves.ts";
import { cascade } from "./outcomes.ts";
import { type Run, groupOf } from "./run.ts";
import type { Apply, State } from "./state.ts";
import { Task } from "./states.ts";
import { noteUse } from "./successes.ts";
import { Flag, isReady, peek, rangeEnd, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * Tasks that need not run are DONE without an attempt. Those that an earlier run has done are so from the beginning: which they are
 * was decided before the run was committed, and is part of that event.
 */
export const skipRows = (state: Pick<State, "refused">, run: Run, ranges: readonly number[], at: number): void => {
  for (let i = 0; i < ranges.length; i += 2)
    for (let row = ranges[i]!, end = rangeEnd(run.table, ranges, i); row < end; row += 1) {
      const page = touch(run.table, row);
      if (page.state[row % run.table.pageRows] === Task.NEW) skipRow(state, run, row, Flag.SKIPPED, at);
    }
};

const skipRow = (state: Pick<State, "refused">, run: Run, row: Row, flags: number, at: number): boolean => {
  if (!advance(state, run, row, Task.DONE)) return false;
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  page.flags[slot]! |= flags;
  page.finished[slot] = at;
  groupOf(run.groups, row).done += 1;
  run.skipped += 1;
  return true;
};

/** Whether it waits to be placed and never was with an agent. */
export const mayBeSkipped = (run: Run, row: Row): boolean => {
  const page = peek(run.table, row);
  if (page === undefined) return run.table.baseState(row) === Task.PENDING;
  const slot = row % run.table.pageRows;
  const { state, agent, attempt, flags } = page;
  return isReady(state[slot]!, agent[slot]!) && attempt[slot] === 0 && (flags[slot]! & Flag.MUST_RUN) === 0;
};

/** Tasks whose outputs are up to date: what was decided when they could be placed. */
export const applySkipped: Apply<TasksSkipped> = (state, event, effects) => {
  for (const { run: id, ranges } of event.parts) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    const moved = newMoved();
    let from = -1;
    const tell = (end: Row): void => {
      if (from >= 0) effects.skipped(run, from, end - from);
      from = -1;
    };
    for (let i = 0; i < ranges.length; i += 2) {
      const end = rangeEnd(run.table, ranges, i);
      for (let row = ranges[i]!; row < end; row += 1) {
        if (!mayBeSkipped(run, row) || !skipRow(state, run, row, Flag.SKIPPED | Flag.UP_TO_DATE, event.at)) {
          tell(row);
          continue;
        }
        if (from < 0) from = row;
        const group = groupOf(run.groups, row);
        noteUse(state, run, group, row);
        noteRows(moved, group, row, 1);
        if (group.done + group.failed + group.canceled === group.count) moved.groups.add(group);
      }
      tell(end);
    }
    cascade(state, run, moved, event.at, effects);
  }
};

/** Applied before the tasks it is about are placed. */
export const applySeen: Apply<InputsSeen> = (state, { run: id, rows, contents }) => {
  const run = state.runs.get(id);
  if (run === undefined) return;
  for (const [i, row] of rows.entries()) {
    if (row >= run.total) continue;
    const group = groupOf(run.groups, row);
    group.contents ??= new Float64Array(group.count);
    group.contents[row - group.first] = contents[i] ?? 0;
  }
};

const flagsOf = (run: Run, row: Row): number => peek(run.table, row)?.flags[row % run.table.pageRows] ?? 0;

export const isSkipped = (run: Run, row: Row): boolean => (flagsOf(run, row) & Flag.SKIPPED) !== 0;

/** Whether it was skipped for its outputs. */
export const isUpToDate = (run: Run, row: Row): boolean => (flagsOf(run, row) & Flag.UP_TO_DATE) !== 0;
