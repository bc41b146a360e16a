import type { Run } from "./run.ts";
import { Task, isFinalTask } from "./states.ts";
import type { Page } from "./table.ts";
import type { AgentId, Row } from "./ids.ts";

/** Which rows agents have. */

/** Whether this agent has this row now, in an attempt that has not ended. */
export const holds = (page: Page, slot: number, agent: AgentId): boolean =>
  page.agent[slot] === agent && page.state[slot]! >= Task.SCHEDULING && !isFinalTask(page.state[slot]!);

/** Visits every row that one of these agents has now. */
export const forEachHeld = (
  run: Run,
  agents: ReadonlySet<number>,
  visit: (row: Row, page: Page, slot: number) => void,
): void => {
  const { table } = run;
  for (let index = 0; index < table.pages.length; index += 1) {
    const page = table.pages[index];
    if (page === undefined) continue;
    const rows = Math.min(table.pageRows, run.total - index * table.pageRows);
    for (let slot = 0; slot < rows; slot += 1) {
      const agent = page.agent[slot]!;
      if (agent !== 0 && agents.has(agent) && holds(page, slot, agent))
        visit(index * table.pageRows + slot, page, slot);
    }
  }
};
