import { valueAt } from "./columns.ts";
import { Ending, type Event, type Grown, type TasksEnded } from "./events.ts";
import { isAt } from "./held.ts";
import { setLaterShape } from "./later-shapes.ts";
import { formatSize } from "./quantities.ts";
import { amountOf } from "./resources.ts";
import { type Group, type Run, groupOf, shapeOfRow, ownMap } from "./run.ts";
import type { GroupSpec } from "./spec.ts";
import type { State } from "./state.ts";
import { Flag, peek } from "./table.ts";
import type { AgentId, Row } from "./ids.ts";

/**
 * A task that was killed for memory is tried again with more, as often as `mem-retry` says. That has a ledger of its
 * own: it spends no retry. How much it gets depends on the clusters of the moment, so it is decided once, before the
 * event is journaled (decision 0013), and applying the event decides nothing.
 */

/** The most memory that a task of a group can get, for each of its ranks, where an agent has run it. */
export type LargestMemory = (spec: GroupSpec, agent: AgentId) => number;

/** What decides how much a task gets that was killed for memory. */
export interface MemoryAdvice {
  readonly largest: LargestMemory;
  /** For `mem: auto`: what tasks of this group needed that needed more than `above`; undefined if nobody knows. */
  readonly learned?: (
    run: Run,
    group: Group,
    asked: { readonly above: number; readonly attempts: number; readonly most: number },
  ) => number | undefined;
}

/**
 * What a task gets after it was killed with `now` bytes, for the `kills + 1`th time: twice as much, and at the last of
 * several tries the largest there is. Undefined when it had its tries, or already has the largest.
 */
export const nextMemory = (now: number, kills: number, tries: number, largest: number): number | undefined => {
  if (kills >= tries || now >= largest || now === 0) return undefined;
  return kills + 1 === tries && tries > 1 ? largest : Math.min(2 * now, largest);
};

const hasKill = ({ ending, rows }: TasksEnded["parts"][number]): boolean => {
  if (typeof ending === "number") return ending === Ending.MEMORY;
  for (let i = 0; i < rows.length; i += 1) if (ending[i] === Ending.MEMORY) return true;
  return false;
};

const decideRow = (
  run: Run,
  group: Group,
  row: Row,
  largest: (spec: GroupSpec) => number,
  learned: MemoryAdvice["learned"],
): number | undefined => {
  const { memRetry = 0, auto } = group.spec;
  if (memRetry === 0) return undefined;
  const now = amountOf(shapeOfRow(group, row).resources, "mem");
  const kills = group.memory.get(row)?.kills ?? 0;
  const most = largest(group.spec);
  const next = nextMemory(now, kills, memRetry, most);
  if (next === undefined || auto?.mem !== true) return next;
  const known = learned?.(run, group, { above: now, attempts: memRetry - kills, most });
  return known !== undefined && known > now && known <= most ? known : next;
};

/** Asks once for each group. */
const askedOnce = (largest: LargestMemory, agent: AgentId): ((spec: GroupSpec) => number) => {
  const known = new Map<GroupSpec, number>();
  return (spec) => {
    const bytes = known.get(spec) ?? largest(spec, agent);
    known.set(spec, bytes);
    return bytes;
  };
};

/** Adds to an event which of its tasks are tried again with more memory, and with how much. */
export const decideMemory = (state: State, event: Event, advice: MemoryAdvice): Event => {
  if (event.type !== "tasks.ended" || !event.parts.some(hasKill)) return event;
  const largestFor = askedOnce(advice.largest, event.agent);
  const grown = event.parts.flatMap((part): Grown[] => {
    const run = state.runs.get(part.run);
    const rows: number[] = [];
    const mem: number[] = [];
    for (const [i, row] of part.rows.entries()) {
      if (run === undefined || row >= run.total || valueAt(part.ending, i) !== Ending.MEMORY) continue;
      const page = peek(run.table, row);
      const slot = row % run.table.pageRows;
      if (page === undefined || page.attempt[slot] !== valueAt(part.attempt, i)) continue;
      if (!isAt(page, slot, event.agent) || (page.flags[slot]! & Flag.CANCEL) !== 0) continue;
      const bytes = decideRow(run, groupOf(run.groups, row), row, largestFor, advice.learned);
      if (bytes === undefined) continue;
      rows.push(row);
      mem.push(bytes);
    }
    return rows.length === 0 ? [] : [{ run: part.run, rows, mem }];
  });
  return grown.length === 0 ? event : { ...event, grown };
};

/** By row, for the tasks of one run. */
export const grownOf = (grown: readonly Grown[] | undefined, run: Run): ReadonlyMap<Row, number> => {
  const of = new Map<Row, number>();
  for (const each of grown ?? [])
    if (each.run === run.id) for (const [i, row] of each.rows.entries()) of.set(row, each.mem[i]!);
  return of;
};

export const KILLED_FOR_MEMORY = "killed for memory";

/** Why an attempt ended whose task is tried again with more. */
export const triedAgain = (group: Group, row: Row, mem: number): string => {
  const had = amountOf(shapeOfRow(group, row).resources, "mem");
  return `${KILLED_FOR_MEMORY} at ${formatSize(had)}; tried again with ${formatSize(mem)}`;
};

/** The next attempt of a row gets this much. */
export const growMemory = (run: Run, group: Group, row: Row, mem: number): void => {
  group.memory = ownMap(group.memory).set(row, { kills: (group.memory.get(row)?.kills ?? 0) + 1, mem });
  setLaterShape(run, group, row);
};
