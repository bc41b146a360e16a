import { isJsonItems, itemsOf, storedAt } from "./item-source.ts";
import { resourcesAt } from "./items.ts";
import type { Resources } from "./resources.ts";
import { dropSet, retriesOf, setOf, withSet } from "./retry-set.ts";
import { type Group, type Run, type Shape, baseShapeOf, waitingShapeOf, ownMap } from "./run.ts";
import { peek } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * What attempts after the first ask for. In amounts, `attempt` counts failures and begins again with `slipway retry`:
 * an attempt that was lost cost nothing, and is repeated with the same amounts. `retry --set` wins over all of that
 * (retry-set.ts), and a task that was killed for memory gets what was decided then (memory-retry.ts).
 */

const laterResources = ({ spec, items, first }: Group, row: Row, asked: Resources, attempt: number): Resources => {
  try {
    const of = itemsOf(spec, items);
    return resourcesAt(spec, asked, storedAt(of, row - first), isJsonItems(of), attempt);
  } catch {
    // only what another version took in can fail here; it keeps what it asks for
    return asked;
  }
};

const forgetShape = ({ laterShapes }: Group, row: Row): void => {
  if (laterShapes.size > 0) ownMap(laterShapes).delete(row);
};

/** Sets what a row asks for from how often it has failed and what it was given. Never throws. */
export const setLaterShape = (run: Run, group: Group, row: Row): void => {
  const fails = peek(run.table, row)?.fails[row % run.table.pageRows] ?? 0;
  const attempt = group.spec.attemptResources === undefined ? 1 : Math.min(fails, retriesOf(group, row)) + 1;
  const given = group.memory.get(row);
  const set = setOf(group, row);
  if (attempt === 1 && given === undefined && set === undefined) return forgetShape(group, row);
  const { resources, timeRequest, alone } = baseShapeOf(group, row);
  const later = withSet(laterResources(group, row, resources, attempt), set);
  const asked = given === undefined ? later : { ...later, mem: given.mem };
  const times = { timeRequest: set?.timeRequest ?? timeRequest };
  const limit = set?.timeLimit === undefined ? {} : { timeLimit: set.timeLimit };
  const shape = group.laterSet.of({ ...group.spec, ...times, ...limit }, asked, alone);
  group.laterShapes = ownMap(group.laterShapes).set(row, shape);
};

/** The same for all rows of a run that was read from a snapshot. */
export const setLaterShapes = (run: Run): void => {
  const { table } = run;
  for (const group of run.groups) {
    for (const row of group.memory.keys()) setLaterShape(run, group, row);
    for (const [i, number] of group.sets?.rows.entries() ?? [])
      if (number > 0) setLaterShape(run, group, group.first + i);
    if (group.spec.attemptResources === undefined) continue;
    for (let row = group.first; row < group.first + group.count; row += 1)
      if ((peek(table, row)?.fails[row % table.pageRows] ?? 0) > 0) setLaterShape(run, group, row);
  }
};

/** A row begins again from its first attempt. */
export const forgetLater = (group: Group, row: Row): void => {
  if (group.memory.size > 0) ownMap(group.memory).delete(row);
  forgetShape(group, row);
  dropSet(group, row);
};

/** The rows from `from` to `end` of a group without shapes per item, in stretches that ask for the same. */
export function* partsByShape(
  group: Group,
  from: Row,
  end: Row,
): Generator<{ readonly shape: Shape; readonly from: Row; readonly count: number }> {
  const { laterShapes } = group;
  const shape = waitingShapeOf(group);
  const others: Row[] = [];
  if (laterShapes.size > end - from) {
    for (let row = from; row < end; row += 1) if (laterShapes.has(row)) others.push(row);
  } else {
    for (const row of laterShapes.keys()) if (row >= from && row < end) others.push(row);
    others.sort((a, b) => a - b);
  }
  let next = from;
  let last: { shape: Shape; from: Row; count: number } | undefined;
  for (const row of others) {
    // rows that ask for the same stay together: `retry --set` may have given it to a million
    const own = laterShapes.get(row)!;
    if (last !== undefined && last.from + last.count === row && last.shape === own) {
      last.count += 1;
      next = row + 1;
      continue;
    }
    if (last !== undefined) yield last;
    if (row > next) yield { shape, from: next, count: row - next };
    last = { shape: own, from: row, count: 1 };
    next = row + 1;
  }
  if (last !== undefined) yield last;
  if (end > next) yield { shape, from: next, count: end - next };
}
