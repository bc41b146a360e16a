import type { RowRanges } from "../core/events.ts";
import { forEachAt, whereOf } from "../core/held.ts";
import type { State } from "../core/state.ts";
import { Flag, peek } from "../core/table.ts";
import type { HeldTasks } from "../protocol/messages.ts";
import type { Engine } from "../server/engine.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/** Brings what an agent has and what the state says it has into agreement. */

type Here = ReadonlyMap<number, ReadonlySet<number>>;

const hasRow = (state: State, agent: AgentId, id: number, row: Row, attempt: number): boolean => {
  const run = state.runs.get(id);
  if (run === undefined || row >= run.total) return false;
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page !== undefined && page.agent[slot] === agent && page.attempt[slot] === attempt;
};

/**
 * What it has but should not have, and what it has and should `stop`: whether it heard of that before is not known. What it should have but never got is placed again, or `missing` where it runs in the
 * job of that task.
 */
export const reconcile = (
  engine: Engine,
  agent: AgentId,
  held: readonly HeldTasks[],
): { readonly drop: HeldTasks[]; readonly stop: HeldTasks[]; readonly missing: readonly RowRanges[] } => {
  const drop: HeldTasks[] = [];
  const stop: HeldTasks[] = [];
  const here = new Map<number, Set<number>>();
  for (const { run, rows, attempts } of held) {
    const bad: { run: RunId; rows: number[]; attempts: number[] } = { run, rows: [], attempts: [] };
    const canceled: typeof bad = { run, rows: [], attempts: [] };
    const mine = new Set<number>();
    for (const [i, row] of rows.entries()) {
      const attempt = attempts[i] ?? 0;
      const isHere = hasRow(engine.state, agent, run, row, attempt);
      if (isHere) mine.add(row);
      if (isHere && !isCanceled(engine.state, run, row)) continue;
      const list = isHere ? canceled : bad;
      list.rows.push(row);
      list.attempts.push(attempt);
    }
    here.set(run, mine);
    if (bad.rows.length > 0) drop.push(bad);
    if (canceled.rows.length > 0) stop.push(canceled);
  }
  const missing = engine.state.agents.get(agent)?.taskJob === undefined ? [] : missingAt(engine, agent, here);
  const wanted = missing.filter(({ run, ranges: [row] }) => !isCanceled(engine.state, run, row!));
  if (wanted.length === 0) giveBackAll(engine, agent, here);
  return { drop, stop, missing: wanted };
};

const isCanceled = ({ runs }: State, id: RunId, row: Row): boolean => {
  const { table } = runs.get(id)!;
  return ((peek(table, row)?.flags[row % table.pageRows] ?? 0) & Flag.CANCEL) !== 0;
};

/** Everything that the state says an agent has, except what it really has. */
const missingAt = (engine: Engine, agent: AgentId, here?: Here): RowRanges[] => {
  const missing: { run: RunId; ranges: number[] }[] = [];
  const where = whereOf(engine.state, [agent]);
  for (const run of engine.state.live) {
    const ranges: number[] = [];
    const mine = here?.get(run.id);
    const note = (row: Row): void => {
      if (mine?.has(row) !== true) ranges.push(row, 1);
    };
    forEachAt(run, new Set([agent]), note, where);
    if (ranges.length > 0) missing.push({ run: run.id, ranges });
  }
  return missing;
};

/** Gives all of that back. */
export const giveBackAll = (engine: Engine, agent: AgentId, here?: Here): void => {
  const missing = missingAt(engine, agent, here);
  if (missing.length > 0) engine.commit({ type: "tasks.returned", at: engine.clock(), agent, parts: missing });
};
