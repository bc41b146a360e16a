import { unpackResults, valueAt } from "../core/columns.ts";
import type { HeldTasks, Results } from "../protocol/messages.ts";
import type { Row, RunId } from "../core/ids.ts";

/**
 * What an agent must report to a server as its own: attempts that have not ended, and those whose results are not on
 * disk.
 */
export const heldTasks = (
  attempts: Iterable<{ readonly run: RunId; readonly row: Row; readonly attempt: number }>,
  unacknowledged: readonly Results[],
): HeldTasks[] => {
  const byRun = new Map<number, { run: RunId; rows: number[]; attempts: number[] }>();
  const note = (run: RunId, row: Row, attempt: number): void => {
    let entry = byRun.get(run);
    if (entry === undefined) byRun.set(run, (entry = { run, rows: [], attempts: [] }));
    entry.rows.push(row);
    entry.attempts.push(attempt);
  };
  for (const { run, row, attempt } of attempts) note(run, row, attempt);
  for (const message of unacknowledged)
    for (const part of message.parts) {
      const columns = unpackResults(part);
      columns.rows.forEach((row, i) => note(part.run, row, valueAt(columns.attempt, i)));
    }
  return [...byRun.values()];
};
