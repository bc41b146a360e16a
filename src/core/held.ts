import type { Run } from "./run.ts";
import type { State } from "./state.ts";
import { Task, isFinalTask } from "./states.ts";
import { type Page, peek } from "./table.ts";
import type { AgentId, Row, RunId } from "./ids.ts";

/**
 * Which rows agents have. One that was handed ahead lies at its agent in NEW, behind the one task it still waits for
 * (decision 0034); all others may run there.
 */

/** Whether it was handed ahead, and what it waits for is not known to have ended well. */
export const isAhead = (page: Page, slot: number): boolean => page.state[slot] === Task.NEW && page.agent[slot] !== 0;

/** Whether this agent has this row now and may run it, in an attempt that has not ended. */
export const holds = (page: Page, slot: number, agent: AgentId): boolean =>
  page.agent[slot] === agent && page.state[slot]! >= Task.SCHEDULING && !isFinalTask(page.state[slot]!);

/** The rows that agents could have: all of a run, or those of the jobs that they run in. */
export type Where = (run: RunId) => "anywhere" | readonly Row[];

const ANYWHERE: Where = () => "anywhere";
const NOWHERE: readonly Row[] = [];

/** Agents of tasks' jobs are as many as tasks: nobody looks through all rows for one of them. */
export const whereOf = ({ agents: known, taskJobs }: State, agents: Iterable<AgentId>): Where => {
  const rows = new Map<RunId, Row[]>();
  for (const id of agents) {
    const of = known.get(id)?.taskJob;
    const job = taskJobs.get(of?.id ?? 0);
    if (of === undefined || job === undefined) return ANYWHERE;
    const row = job.elements[of.element]?.row;
    if (row !== undefined) rows.set(job.run, [...(rows.get(job.run) ?? []), row]);
  }
  return (run) => rows.get(run) ?? NOWHERE;
};

/** Whether this agent has this row now, be it handed ahead. */
export const isAt = (page: Page, slot: number, agent: AgentId): boolean =>
  holds(page, slot, agent) || (isAhead(page, slot) && page.agent[slot] === agent);

type Visit = (row: Row, page: Page, slot: number) => void;

/** Visits every row that one of these agents has now, of those that they could have. */
const forEach = (run: Run, agents: ReadonlySet<number>, has: typeof holds, visit: Visit, where: Where): void => {
  const { table } = run;
  const rowsThere = where(run.id);
  if (rowsThere !== "anywhere") {
    for (const row of new Set(rowsThere)) {
      const page = row < run.total ? peek(table, row) : undefined;
      const slot = row % table.pageRows;
      const agent = page?.agent[slot] ?? 0;
      if (page !== undefined && agents.has(agent) && has(page, slot, agent)) visit(row, page, slot);
    }
    return;
  }
  for (let index = 0; index < table.pages.length; index += 1) {
    const page = table.pages[index];
    if (page === undefined) continue;
    const rows = Math.min(table.pageRows, run.total - index * table.pageRows);
    for (let slot = 0; slot < rows; slot += 1) {
      const agent = page.agent[slot]!;
      if (agent !== 0 && agents.has(agent) && has(page, slot, agent)) visit(index * table.pageRows + slot, page, slot);
    }
  }
};

/** Visits every row that one of these agents may run now. */
export const forEachHeld = (run: Run, agents: ReadonlySet<number>, visit: Visit, where: Where = ANYWHERE): void =>
  forEach(run, agents, holds, visit, where);

/** Visits every row that one of these agents has now, those handed ahead too. */
export const forEachAt = (run: Run, agents: ReadonlySet<number>, visit: Visit, where: Where = ANYWHERE): void =>
  forEach(run, agents, isAt, visit, where);
