import type { RunRequests } from "./events.ts";
import { isAt } from "./held.ts";
import { setLaterShape } from "./later-shapes.ts";
import { type Group, type LearnedAmounts, type Run, groupOf, isFinishedRun } from "./run.ts";
import type { Apply } from "./state.ts";
import { isFinalTask } from "./states.ts";
import { peek } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * With `mem: auto` or `time-request: auto` the tasks of a group that have not begun ask for what was learned meanwhile;
 * an attempt keeps what it was given. What was learned is advice, so each change is an event of its own.
 */

/** A row holds the number of its version in 8 bits; 0 is none. */
const MOST_VERSIONS = 255;

/** Rows that have begun keep the amounts they began with: the first ones. */
const beginLearned = (run: Run, group: Group): LearnedAmounts => {
  const rows = new Uint8Array(group.count);
  const { table } = run;
  for (let row = group.first; row < group.first + group.count; row += 1) {
    const page = peek(table, row);
    const slot = row % table.pageRows;
    if (page === undefined || page.attempt[slot] === 0) continue;
    if (isFinalTask(page.state[slot]!) || isAt(page, slot, page.agent[slot]!)) rows[row - group.first] = 1;
  }
  return { versions: [{ mem: undefined, timeRequest: undefined, shapes: new Map() }], rows };
};

export const applyRequests: Apply<RunRequests> = (state, event, effects) => {
  const run = state.runs.get(event.run);
  const group = run?.groups[event.group];
  if (run === undefined || group === undefined || isFinishedRun(run)) return;
  if ((group.learned?.versions.length ?? 0) >= MOST_VERSIONS) return;
  // what waits is counted by what it asked for until now
  effects.unqueue(run);
  group.learned ??= beginLearned(run, group);
  const { versions, rows } = group.learned;
  const last = versions.at(-1)!;
  const { mem = last.mem, timeRequest = last.timeRequest } = event;
  versions.push({ mem, timeRequest, shapes: new Map() });
  for (const row of group.laterShapes.keys()) if (rows[row - group.first] === 0) setLaterShape(run, group, row);
  effects.requeue(run);
};

/** An attempt begins: it keeps what its task asks for now. */
export const keepAmounts = ({ learned, first }: Group, row: Row): void => {
  if (learned !== undefined) learned.rows[row - first] = learned.versions.length;
};

/** An attempt is over, or was given back: the next one asks for what is known then. */
export const releaseAmounts = (run: Run, row: Row): void => {
  const group = groupOf(run.groups, row);
  if (group.learned === undefined) return;
  group.learned.rows[row - group.first] = 0;
  if (group.laterShapes.has(row)) setLaterShape(run, group, row);
};
