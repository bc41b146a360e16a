import type { Launch } from "./launch.ts";
import { moveCounted, moveUntouched } from "./group-counts.ts";
import { clearLost } from "./output-lost.ts";
import { releaseAmounts } from "./learned-amounts.ts";
import { clearPeak } from "./peak.ts";
import { clearUsage } from "./usage.ts";
import { remember } from "./past-attempts.ts";
import type { Group, Run } from "./run.ts";
import type { Effects, Pilot, State } from "./state.ts";
import {
  type LaunchState,
  type PilotState,
  Task,
  mayAdvanceLaunch,
  mayAdvancePilot,
  mayAdvanceTask,
  mayReopenTask,
  taskStateName,
} from "./states.ts";
import { Flag, setOutput, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * The doors through which states change; nothing else writes one (test/unit/core/moves.test.ts looks). A task moves
 * through `advance` within an attempt, and through `reopen` to the next. A move that states.ts does not allow is
 * refused: nothing changes, and the refusal is counted. It never throws, since what was once written must replay.
 */

const refuse = (state: Pick<State, "refused">, run: Run, row: Row, from: number, to: number): false => {
  state.refused.count += 1;
  state.refused.last = `run ${run.id}, row ${row}: ${taskStateName(from)} to ${taskStateName(to)}`;
  return false;
};

/** Moves one task forward and keeps the run's counts; false if the move is not allowed. */
export const advance = (state: Pick<State, "refused">, run: Run, row: Row, to: number): boolean => {
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  const from = page.state[slot]!;
  if (!mayAdvanceTask(from, to)) return refuse(state, run, row, from, to);
  run.counts[from]! -= 1;
  run.counts[to]! += 1;
  if (run.groupCounts !== undefined) moveCounted(run, row, from, to);
  page.state[slot] = to;
  return true;
};

/** A group's tasks may be placed: those whose page was never touched move with its base state, `untouched` of them. */
export const advanceUntouched = (run: Run, group: Group, untouched: number): void => {
  group.base = Task.PENDING;
  run.counts[Task.NEW]! -= untouched;
  run.counts[Task.PENDING]! += untouched;
  moveUntouched(run, group, untouched);
};

/**
 * Puts the latest attempt into the history and makes the row wait for the next one, in `to`; tells `effects`, if given.
 * False if the move is not allowed.
 */
export const reopen = (
  state: Pick<State, "refused">,
  run: Run,
  row: Row,
  lost: boolean,
  to: number,
  effects?: Effects,
): boolean => {
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  const from = page.state[slot]!;
  if (!mayReopenTask(from, to)) return refuse(state, run, row, from, to);
  const attempt = remember(run, row, lost);
  if (attempt !== undefined) effects?.attemptOver(run, row, attempt);
  page.agent[slot] = 0;
  page.assigned[slot] = 0;
  page.started[slot] = 0;
  page.finished[slot] = 0;
  setOutput(page, slot, -1);
  clearLost(run, row);
  clearPeak(run, row);
  clearUsage(run, row);
  releaseAmounts(run, row);
  page.exit[slot] = -1;
  page.signal[slot] = 0;
  page.reason[slot] = 0;
  page.flags[slot]! &= Flag.ALONE;
  run.counts[from]! -= 1;
  run.counts[to]! += 1;
  if (run.groupCounts !== undefined) moveCounted(run, row, from, to);
  page.state[slot] = to;
  return true;
};

/** `retry` has reopened a group's tasks: the group waits for its dependencies again. */
export const reopenGroup = (group: Group): void => {
  group.base = Task.NEW;
};

/**
 * Events about pilots and launches carry the state as their sender knew it: one that is behind says nothing new, and
 * does not count as a refusal. False if it did not move.
 */
export const advancePilot = (pilot: Pilot, to: PilotState): boolean => {
  if (!mayAdvancePilot(pilot.state, to)) return false;
  pilot.state = to;
  return true;
};

export const advanceLaunch = (launch: Launch, to: LaunchState): boolean => {
  if (!mayAdvanceLaunch(launch.state, to)) return false;
  launch.state = to;
  return true;
};
