import { holds, isAhead } from "./held.ts";
import { judgeLink, placeAfter, placeBefore } from "./item-links.ts";
import { keepAmounts } from "./learned-amounts.ts";
import { NO_PLACE } from "./pairing.ts";
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

/** The task of a whole group of one that another group of one still waits for, if that is all it waits for. */
const wholeBefore = (run: Run, { spec, waits, count }: Group): Row | undefined => {
  if (waits !== 1 || count !== 1) return undefined;
  for (const dependency of spec.after) {
    const group = "group" in dependency ? run.groups[dependency.group]! : undefined;
    if (group !== undefined && group.done + group.failed + group.canceled < group.count)
      return dependency.on === "ok" && group.count === 1 ? group.first : undefined;
  }
  return undefined;
};

/** The same for a task that waits for those of its item. */
const linkedBefore = (run: Run, { waits, links, first }: Group, row: Row): Row | undefined => {
  if (waits !== 0) return undefined;
  let before: Row | undefined;
  for (const link of links) {
    const verdict = judgeLink(run, link, row - first);
    if (verdict === "met") continue;
    const place = placeBefore(link.pairing, row - first);
    if (verdict === "never" || before !== undefined || link.on !== "ok" || place === NO_PLACE) return undefined;
    before = run.groups[link.before]!.first + place;
  }
  return before;
};

/** The one task whose good end a task still waits for; undefined if it waits for nothing, or for more. */
export const oneBefore = (run: Run, group: Group, row: Row): Row | undefined =>
  group.links.length === 0 ? wholeBefore(run, group) : linkedBefore(run, group, row);

/** How many groups that wait for one task are looked at. */
const MOST_LOOKED = 256;

/** The tasks that wait for the good end of this one alone, or for more: of each group at most one. */
export const rowsAfter = (run: Run, { dependents, count, first }: Group, row: Row): Row[] => {
  const rows: Row[] = [];
  const most = Math.min(dependents.length, MOST_LOOKED);
  for (let i = 0; i < most; i += 1) {
    const { group: index, on, link } = dependents[i]!;
    if (on !== "ok") continue;
    const group = run.groups[index]!;
    if (link === undefined) {
      if (count === 1 && group.count === 1) rows.push(group.first);
      continue;
    }
    const place = placeAfter(link.pairing, row - first);
    if (place !== NO_PLACE) rows.push(group.first + place);
  }
  return rows;
};

/** The task that lies at the same agent behind this one. */
export const followerOf = (run: Run, group: Group, row: Row, agent: number): Row | undefined =>
  rowsAfter(run, group, row).find((after) => {
    const page = peek(run.table, after);
    const slot = after % run.table.pageRows;
    return page !== undefined && isAhead(page, slot) && page.agent[slot] === agent;
  });

/** Whether it was never lost: what was is neither handed ahead nor followed, so that no task costs another two losses. */
export const neverLost = (run: Run, row: Row): boolean => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page === undefined || (page.losses[slot] === 0 && (page.flags[slot]! & Flag.ALONE) === 0);
};

/** Whether a task that waits for this one could be handed ahead behind it now, as far as the two are concerned. */
export const mayGoBehind = (run: Run, before: Row, group: Group, row: Row): boolean => {
  if (group.base !== Task.NEW || group.spec.ranks !== undefined || group.spec.job !== undefined) return false;
  // whether it need run is known when what it waits for has ended; and that may have ended without what it should have made
  if (group.spec.outputs !== undefined || groupOf(run.groups, before).spec.outputs !== undefined) return false;
  // of an array whose memory is learned only the first tasks go at first
  if (group.count > 1 && group.spec.auto?.mem === true) return false;
  if (oneBefore(run, group, row) !== before) return false;
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  if (page === undefined) return true;
  return page.state[slot] === Task.NEW && page.agent[slot] === 0 && neverLost(run, row);
};

/** Whether an agent still has a task that others may lie behind. */
export const mayBeFollowed = (run: Run, row: Row, agent: number): boolean => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page !== undefined && holds(page, slot, agent) && (page.flags[slot]! & Flag.CANCEL) === 0;
};
