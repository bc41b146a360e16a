import { gangKey } from "../core/gangs.ts";
import type { Run } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { peek } from "../core/table.ts";
import type { OutputLimits, OutputLimitsMessage } from "../protocol/messages.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/**
 * How much output runs have left behind, over all agents: the state knows it for ended attempts, and agents keep
 * reporting it for running ones. A run that has reached its limit stays over it; each agent enforces the limits of
 * tasks, and what it knows of the run's, by itself.
 */
export interface OutputLimiter {
  /** What an agent gets when it first learns of a run. */
  limitsOf(run: Run): OutputLimits;
  /** An attempt of this agent, or its part of a gang, has left this many bytes so far. */
  progress(agent: AgentId, run: RunId, row: Row, attempt: number, kept: number): void;
  /** The attempt has ended: the state knows what it left. */
  ended(agent: AgentId, run: RunId, row: Row): void;
  /** The state has changed. */
  check(run: RunId): void;
  gone(agent: AgentId): void;
  forget(run: RunId): void;
}

export interface OutputLimiterOptions {
  readonly state: State;
  readonly limits: { readonly outputPerTask: number; readonly outputPerRun: number };
  /** Tells all agents that know the run. */
  readonly tell: (message: OutputLimitsMessage) => void;
}

export const createOutputLimiter = ({ state, limits, tell }: OutputLimiterOptions): OutputLimiter => {
  /** Bytes by agent, run and row; and their sums by run. */
  const open = new Map<number, Map<number, Map<number, number>>>();
  const sums = new Map<number, number>();
  const over = new Set<number>();

  const isOver = (run: Run): boolean =>
    over.has(run.id) || run.outputBytes + (sums.get(run.id) ?? 0) >= limits.outputPerRun;

  const limitsOf = (run: Run): OutputLimits => ({
    perTask: limits.outputPerTask,
    perRun: limits.outputPerRun,
    over: isOver(run),
  });

  const check = (id: number): void => {
    const run = state.runs.get(id);
    if (run === undefined || over.has(id) || !isOver(run)) return;
    over.add(id);
    tell({ t: "output", run: id, ...limitsOf(run) });
  };

  /** Only what this agent was given: nothing else may use memory here. */
  const has = (agent: AgentId, id: number, row: Row, attempt: number): boolean => {
    const gang = state.gangs.get(gangKey(id, row));
    if (gang?.attempt === attempt && gang.agents.includes(agent)) return true;
    const run = state.runs.get(id);
    const page = run === undefined || row >= run.total ? undefined : peek(run.table, row);
    const slot = run === undefined ? 0 : row % run.table.pageRows;
    return page?.agent[slot] === agent && page.attempt[slot] === attempt;
  };

  const rowsOf = (agent: AgentId, run: RunId): Map<number, number> => {
    let runs = open.get(agent);
    if (runs === undefined) open.set(agent, (runs = new Map()));
    let rows = runs.get(run);
    if (rows === undefined) runs.set(run, (rows = new Map()));
    return rows;
  };

  const addTo = (run: RunId, bytes: number): void => void sums.set(run, (sums.get(run) ?? 0) + bytes);

  return {
    limitsOf,
    progress: (agent, run, row, attempt, kept) => {
      if (!has(agent, run, row, attempt)) return;
      const rows = rowsOf(agent, run);
      addTo(run, kept - (rows.get(row) ?? 0));
      rows.set(row, kept);
      check(run);
    },
    ended: (agent, run, row) => {
      const rows = open.get(agent)?.get(run);
      const kept = rows?.get(row);
      if (rows === undefined || kept === undefined) return;
      addTo(run, -kept);
      rows.delete(row);
    },
    check,
    gone: (agent) => {
      for (const [run, rows] of open.get(agent) ?? []) for (const kept of rows.values()) addTo(run, -kept);
      open.delete(agent);
    },
    forget: (run) => {
      for (const runs of open.values()) runs.delete(run);
      sums.delete(run);
      over.delete(run);
    },
  };
};
