import type { AgentsLost } from "../core/events.ts";
import { gangsWithout } from "../core/gangs.ts";
import { forEachHeld, whereOf } from "../core/held.ts";
import type { State } from "../core/state.ts";
import { type Page, touch } from "../core/table.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/**
 * What agents had reported about attempts that are about to be lost: when they began, and where their output is. No
 * result will ever say. `tailOf`: how far the output of a running attempt has come.
 */
export const saidOfLost = (
  state: State,
  agents: readonly number[],
  tailOf: (agent: AgentId, run: RunId, row: Row) => number | undefined,
): NonNullable<AgentsLost["started"]> => {
  const gone = new Set(agents);
  const crippled = gangsWithout(state, gone).filter(({ agents: [head] }) => !gone.has(head!));
  const said: { run: RunId; rows: number[]; at: number[]; outAt: number[] }[] = [];
  const where = whereOf(state, gone);
  for (const run of state.live) {
    const part = { run: run.id, rows: [] as number[], at: [] as number[], outAt: [] as number[] };
    const note = (row: Row, page: Page, slot: number): void => {
      if (page.started[slot] === 0) return;
      part.rows.push(row);
      part.at.push(page.started[slot]!);
      part.outAt.push(tailOf(page.agent[slot]!, run.id, row) ?? -1);
    };
    forEachHeld(run, gone, note, where);
    for (const gang of crippled)
      if (gang.run === run.id) note(gang.row, touch(run.table, gang.row), gang.row % run.table.pageRows);
    if (part.rows.length > 0) said.push(part);
  }
  return said;
};
