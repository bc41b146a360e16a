import { type Group, type Run, type Shape, shapeOfRow } from "../core/run.ts";
import { Task, isFinalTask } from "../core/states.ts";
import { peek } from "../core/table.ts";
import type { Expected } from "../learned/expected.ts";
import { WINDOW } from "../learned/window.ts";
import { guessFor, withRunning } from "./guesses.ts";
import { type Ordered, isOpen } from "./order.ts";
import { runningOf } from "./running.ts";
import type { OpenGroup, OpenWork, Times } from "./work.ts";

/** What is left of a run, from its state and what was learned. */

export interface Capacity {
  /** How many tasks of a shape one unit of capacity runs at once; 0 if none. */
  atOnce(shape: Shape): number;
  readonly units: number;
  readonly arrivals: OpenWork["arrivals"];
  readonly aheadMs: number;
}

/** So many of those that wait are asked what they took the last time. */
const SAMPLED = 64;

/** The group's rows that have not ended, a few of them, evenly. */
const sampleRows = (run: Run, group: Group): number[] => {
  const rows: number[] = [];
  const step = Math.max(1, Math.floor(group.count / SAMPLED));
  for (let row = group.first; row < group.first + group.count; row += step) {
    const state = peek(run.table, row)?.state[row % run.table.pageRows] ?? group.base;
    if (!isFinalTask(state)) rows.push(row);
  }
  return rows;
};

const timesOf = (
  run: Run,
  group: Group,
  expected: Expected,
  guess: (group: Group) => Omit<Times, "key">,
  running: readonly number[],
): Times => {
  const key = expected.templateKey(run, group);
  const took = expected.templateOf(run, group)?.took.values() ?? new Float32Array(0);
  // of a task without an item, the template's durations are all its own
  const single = group.spec.items.kind === "one" && took.length > 0;
  const own = single ? undefined : expected.ownTimes(run, group, sampleRows(run, group));
  if (own !== undefined) return { key, values: own };
  if (took.length > 0) {
    const early = group.done >= took.length && group.done < WINDOW;
    return { key, values: early ? withRunning(took, running) : took };
  }
  return { key, ...guess(group) };
};

/** Undefined where a task could run nowhere that is known. */
export const openWork = (
  run: Run,
  { ordered: all, levels }: Ordered,
  now: number,
  expected: Expected,
  capacity: Capacity,
): OpenWork | undefined => {
  const ordered = all.filter(isOpen);
  const places = new Map(ordered.map((group, i) => [group.index, i]));
  const groups: OpenGroup[] = [];
  const guess = guessFor(run, levels, now, expected);
  for (const group of ordered) {
    const atOnce = capacity.atOnce(shapeOfRow(group, group.first));
    if (atOnce <= 0) return undefined;
    const running = runningOf(run, group, now);
    groups.push({
      waiting: Math.max(0, group.count - group.done - group.failed - group.canceled - running.length),
      running,
      after: group.spec.after.flatMap((each) => ("group" in each ? (places.get(each.group) ?? []) : [])),
      byItem: group.links.flatMap(({ before }) => places.get(before) ?? []),
      atOnce,
      priority: group.spec.priority,
      times: timesOf(run, group, expected, guess, running),
    });
  }
  const ended = run.counts[Task.DONE]! + run.counts[Task.FAILED]!;
  const attempts = 1 + (ended === 0 ? 0 : Math.min(1, run.retries / ended));
  return { groups, units: capacity.units, arrivals: capacity.arrivals, aheadMs: capacity.aheadMs, attempts };
};
