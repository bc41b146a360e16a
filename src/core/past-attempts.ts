import { type Attempt, type Run, latestAttempt, ownMap } from "./run.ts";
import { Task, isFinalTask } from "./states.ts";
import { peek, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * Earlier attempts. The latest one is in the table; only tasks that had more have records here, and of those only the
 * first few and the last few: enough to see how it began and what happens now, however often it was tried.
 */

export const KEPT_FIRST = 3;
export const KEPT_LAST = 5;

/** The first and last few of an ordered list. */
const ends = (attempts: readonly Attempt[]): Attempt[] =>
  attempts.length <= KEPT_FIRST + KEPT_LAST
    ? [...attempts]
    : [...attempts.slice(0, KEPT_FIRST), ...attempts.slice(-KEPT_LAST)];

/** Sets a task's earlier attempts; drops those that are not kept, and what their ranks wrote. */
export const keepAttempts = (run: Run, row: Row, attempts: readonly Attempt[]): void => {
  const kept = ends(attempts);
  run.history = ownMap(run.history).set(row, kept);
  const outputs = run.rankOutputs.get(row);
  if (outputs === undefined || kept.length === attempts.length) return;
  const known = new Set([...kept.map(({ n }) => n), touch(run.table, row).attempt[row % run.table.pageRows]!]);
  ownMap(run.rankOutputs).set(
    row,
    outputs.filter(({ attempt }) => known.has(attempt)),
  );
};

/** Keeps the attempt in the table before the next one takes its place. Undefined if it was kept already. */
export const remember = (run: Run, row: Row, lost: boolean): Attempt | undefined => {
  const before = run.history.get(row) ?? [];
  const latest = latestAttempt(run, row, lost);
  if (latest.n === 0 || before.at(-1)?.n === latest.n) return undefined;
  const ended = isFinalTask(latest.state!) ? latest : { ...latest, state: Task.FAILED };
  keepAttempts(run, row, [...before, ended]);
  return ended;
};

/** The latest attempt, if the table still holds it. */
export const currentAttempt = (run: Run, row: Row): Attempt | undefined => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  if (page === undefined || page.attempt[slot] === 0) return undefined;
  const past = run.history.get(row)?.at(-1);
  // after a retry the number is still that of the previous attempt, until the next one is assigned
  if (past?.n === page.attempt[slot]) return undefined;
  return latestAttempt(run, row, false);
};

/** The attempts of a task that are kept, in order. */
export const attemptsOf = (run: Run, row: Row): Attempt[] => {
  const current = currentAttempt(run, row);
  const past = run.history.get(row) ?? [];
  return current === undefined ? [...past] : ends([...past, current]);
};

/** How many attempts of a task are not kept. */
export const droppedOf = (run: Run, row: Row): number => {
  const kept = attemptsOf(run, row);
  return Math.max(0, (kept.at(-1)?.n ?? 0) - kept.length);
};
