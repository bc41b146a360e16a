import { resourcesAt } from "./items.ts";
import { type Group, type Run, type Shape, firstShapeOf, shapeOf } from "./run.ts";
import { peek } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * What attempts after the first ask for. In amounts, `attempt` counts failures and begins again with `slipway retry`:
 * an attempt that was lost cost nothing, and is repeated with the same amounts.
 */

/** Sets what a row asks for from how often it has failed. Never throws: all of its attempts were checked at submit. */
export const setShapeByFails = (group: Group, row: Row, fails: number): void => {
  if (group.spec.attemptResources === undefined) return;
  const attempt = Math.min(fails, group.spec.retries) + 1;
  if (attempt === 1) return void group.laterShapes.delete(row);
  const first = firstShapeOf(group, row);
  try {
    const stored = group.items?.get(row - group.first);
    const resources = resourcesAt(group.spec, first.resources, stored, group.items?.json ?? false, attempt);
    group.laterShapes.set(row, shapeOf(group.spec, resources));
  } catch {
    // only what another version took in can fail here; it keeps what it asks for
  }
};

/** The same for all rows of a run that was read from a snapshot. */
export const setShapesByFails = (run: Run): void => {
  const { table } = run;
  for (const group of run.groups) {
    if (group.spec.attemptResources === undefined) continue;
    for (let row = group.first; row < group.first + group.count; row += 1) {
      const fails = peek(table, row)?.fails[row % table.pageRows] ?? 0;
      if (fails > 0) setShapeByFails(group, row, fails);
    }
  }
};

/** The rows from `from` to `end` of a group without shapes per item, in stretches that ask for the same. */
export function* partsByShape(
  { shape, laterShapes }: Group,
  from: Row,
  end: Row,
): Generator<{ readonly shape: Shape; readonly from: Row; readonly count: number }> {
  const others: Row[] = [];
  if (laterShapes.size > end - from) {
    for (let row = from; row < end; row += 1) if (laterShapes.has(row)) others.push(row);
  } else {
    for (const row of laterShapes.keys()) if (row >= from && row < end) others.push(row);
    others.sort((a, b) => a - b);
  }
  let next = from;
  for (const row of others) {
    if (row > next) yield { shape, from: next, count: row - next };
    yield { shape: laterShapes.get(row)!, from: row, count: 1 };
    next = row + 1;
  }
  if (end > next) yield { shape, from: next, count: end - next };
}
