import { holds, isAhead } from "./held.ts";
import { keepAmounts } from "./learned-amounts.ts";
import { type Group, type Run, groupOf } from "./run.ts";
import type { TasksAssigned } from "./events.ts";
import type { State } from "./state.ts";
import { Task } from "./states.ts";
import { Flag, peek, rangeEnd, stateOf, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * Tasks handed ahead: each lies at an agent behind the one task it still waits for (decision 0034). Its attempt begins
 * with the assignment; it stays in NEW until that one is done, and comes back untouched if that one is not.
 *
 *     NEW ──► NEW, with an agent ──► TMGR_SCHEDULING, with it ──► as any other
 *      ▲              │ given back; lost, with what it waits for
 *      └──────────────┘
 */

export const applyAhead = (state: State, { at, agent, ahead = [] }: TasksAssigned): void => {
  for (const { run: id, ranges } of ahead) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    for (let i = 0; i < ranges.length; i += 2)
      for (let row = ranges[i]!, end = rangeEnd(run.table, ranges, i); row < end; row += 1) {
        if (stateOf(run.table, row) !== Task.NEW) continue;
        const page = touch(run.table, row);
        const slot = row % run.table.pageRows;
        if (page.agent[slot] !== 0) continue;
        page.attempt[slot]! += 1;
        page.agent[slot] = agent;
        keepAmounts(groupOf(run.groups, row), row);
        page.assigned[slot] = at;
      }
  }
};

/** The one task whose good end a group of one still waits for; undefined if it waits for nothing, or for more. */
export const oneBefore = (run: Run, { spec, waits }: Group): Group | undefined => {
  if (waits !== 1) return undefined;
  for (const dependency of spec.after) {
    const group = "group" in dependency ? run.groups[dependency.group]! : undefined;
    if (group !== undefined && group.done + group.failed + group.canceled < group.count)
      return dependency.on === "ok" && group.count === 1 ? group : undefined;
  }
  return undefined;
};

/** The task that lies at the same agent behind the one of this group. */
export const followerOf = (run: Run, { dependents }: Group, agent: number): Group | undefined => {
  for (const { group: index } of dependents) {
    const group = run.groups[index]!;
    const page = group.count === 1 ? peek(run.table, group.first) : undefined;
    const slot = group.first % run.table.pageRows;
    if (page !== undefined && isAhead(page, slot) && page.agent[slot] === agent) return group;
  }
  return undefined;
};

/** Whether it was never lost: what was is neither handed ahead nor followed, so that no task costs another two losses. */
export const neverLost = (run: Run, row: Row): boolean => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page === undefined || (page.losses[slot] === 0 && (page.flags[slot]! & Flag.ALONE) === 0);
};

/** Whether the task of this group of one could be handed ahead now, as far as it is concerned. */
export const mayGoAhead = (run: Run, { count, base, waits, spec, first }: Group): boolean => {
  if (count !== 1 || base !== Task.NEW || waits !== 1 || spec.ranks !== undefined || spec.job !== undefined)
    return false;
  const page = peek(run.table, first);
  const slot = first % run.table.pageRows;
  if (page === undefined) return true;
  return page.state[slot] === Task.NEW && page.agent[slot] === 0 && neverLost(run, first);
};

/** Whether an agent still has a task that others may lie behind. */
export const mayBeFollowed = (run: Run, row: Row, agent: number): boolean => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page !== undefined && holds(page, slot, agent) && (page.flags[slot]! & Flag.CANCEL) === 0;
};
