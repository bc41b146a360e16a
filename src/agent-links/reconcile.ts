import { forEachAt } from "../core/held.ts";
import type { State } from "../core/state.ts";
import { peek } from "../core/table.ts";
import type { HeldTasks } from "../protocol/messages.ts";
import type { Engine } from "../server/engine.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/** Brings what an agent has and what the state says it has into agreement. */

const hasRow = (state: State, agent: AgentId, id: number, row: Row, attempt: number): boolean => {
  const run = state.runs.get(id);
  if (run === undefined || row >= run.total) return false;
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page !== undefined && page.agent[slot] === agent && page.attempt[slot] === attempt;
};

/** Returns what it has but should not have; what it should have but never got is placed again. */
export const reconcile = (engine: Engine, agent: AgentId, held: readonly HeldTasks[]): HeldTasks[] => {
  const drop: HeldTasks[] = [];
  const here = new Map<number, Set<number>>();
  for (const { run, rows, attempts } of held) {
    const bad: { run: RunId; rows: number[]; attempts: number[] } = { run, rows: [], attempts: [] };
    const mine = new Set<number>();
    for (const [i, row] of rows.entries()) {
      const attempt = attempts[i] ?? 0;
      if (hasRow(engine.state, agent, run, row, attempt)) mine.add(row);
      else {
        bad.rows.push(row);
        bad.attempts.push(attempt);
      }
    }
    here.set(run, mine);
    if (bad.rows.length > 0) drop.push(bad);
  }
  giveBackAll(engine, agent, here);
  return drop;
};

/** Gives back everything that the state says an agent has, except what it really has. */
export const giveBackAll = (engine: Engine, agent: AgentId, here?: ReadonlyMap<number, ReadonlySet<number>>): void => {
  const missing: { run: RunId; ranges: number[] }[] = [];
  for (const run of engine.state.runs.values()) {
    const ranges: number[] = [];
    const mine = here?.get(run.id);
    forEachAt(run, new Set([agent]), (row) => {
      if (mine?.has(row) !== true) ranges.push(row, 1);
    });
    if (ranges.length > 0) missing.push({ run: run.id, ranges });
  }
  if (missing.length > 0) engine.commit({ type: "tasks.returned", at: engine.clock(), agent, parts: missing });
};
