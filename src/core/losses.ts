import { valueAt } from "./columns.ts";
import { type AgentsLost, Ending, type Event, type GivenUp, type TasksEnded } from "./events.ts";
import { gangsWithout } from "./gangs.ts";
import { forEachAt, whereOf } from "./held.ts";
import type { Run } from "./run.ts";
import type { State } from "./state.ts";
import { Flag, MOST_LOSSES, peek } from "./table.ts";
import type { Row, RunId } from "./ids.ts";

/**
 * How often a task may be lost is a setting, and settings change between two starts. So it is read once, before an
 * event is journaled: the event says which tasks were given up, and applying it decides nothing.
 */
export const decideLosses = (state: State, event: Event, limit: number): Event => {
  if (event.type === "agents.lost") return { ...event, givenUp: amongLost(state, event, limit) };
  if (event.type === "tasks.ended" && event.parts.some(({ ending, rows }) => hasLoss(ending, rows.length)))
    return { ...event, givenUp: amongEnded(state, event, limit) };
  return event;
};

/** Whether an attempt that ended like this was lost, and counts as a loss. */
export const isLoss = (ending: number): boolean => ending === Ending.CUT_OFF || ending === Ending.SPAWNER_LOST;

/** A task that took its own spawner down did it alone, so it also caused the earlier loss in company. */
export const lossesInCompany = (ending: number): number => (ending === Ending.SPAWNER_LOST ? 1 : 0);

/** Lost with a spawner that others shared: a neighbour may have caused it, and no task is given up for that. */
const isSuspect = (run: Run, row: Row, ending: number): boolean =>
  ending === Ending.SPAWNER_LOST && ((peek(run.table, row)?.flags[row % run.table.pageRows] ?? 0) & Flag.ALONE) === 0;

const hasLoss = (ending: TasksEnded["parts"][number]["ending"], rows: number): boolean => {
  if (typeof ending === "number") return isLoss(ending);
  for (let i = 0; i < rows; i += 1) if (isLoss(ending[i]!)) return true;
  return false;
};

const isOneTooMany = (run: Run, row: Row, limit: number, earlier = 0): boolean =>
  (peek(run.table, row)?.losses[row % run.table.pageRows] ?? 0) + 1 + earlier > Math.min(limit, MOST_LOSSES);

const amongLost = (state: State, event: AgentsLost, limit: number): GivenUp[] => {
  const gone = new Set(event.agents);
  const rows = new Map<number, number[]>();
  const note = (run: Run, row: Row): void => {
    if (!isOneTooMany(run, row, limit)) return;
    const list = rows.get(run.id);
    if (list === undefined) rows.set(run.id, [row]);
    else list.push(row);
  };
  const where = whereOf(state, gone);
  for (const run of state.live) forEachAt(run, gone, (row) => note(run, row), where);
  for (const gang of gangsWithout(state, gone)) {
    const run = state.runs.get(gang.run);
    if (run !== undefined && !gone.has(gang.agents[0]!)) note(run, gang.row);
  }
  return [...rows].map(([run, list]) => ({ run, rows: list }));
};

const amongEnded = (state: State, event: TasksEnded, limit: number): GivenUp[] =>
  event.parts.flatMap(({ run: id, rows, ending }) => {
    const run = state.runs.get(id);
    if (run === undefined) return [];
    const list: number[] = [];
    for (const [i, row] of rows.entries()) {
      const how = valueAt(ending, i);
      if (row >= run.total || !isLoss(how) || isSuspect(run, row, how)) continue;
      if (isOneTooMany(run, row, limit, lossesInCompany(how))) list.push(row);
    }
    return list.length === 0 ? [] : [{ run: id, rows: list }];
  });

/** For each loss, applying an event asks: is this task given up? Undefined: nothing was decided at the time. */
export type Verdict = (run: RunId, row: Row) => boolean | undefined;

export const verdictOf = (givenUp: readonly GivenUp[] | undefined): Verdict => {
  if (givenUp === undefined) return () => undefined;
  const rows = new Map(givenUp.map((each) => [each.run, new Set(each.rows)]));
  return (run, row) => rows.get(run)?.has(row) === true;
};
