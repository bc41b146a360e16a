import { type Run, type Shape, shapeOfRow } from "../core/run.ts";
import type { Expected } from "../learned/expected.ts";
import { type Estimate, calibrated } from "./estimate.ts";
import type { Capacity } from "./open-work.ts";
import { type Ordered, isOpen } from "./order.ts";
import { PIECE, type Steps } from "./steps.ts";

/**
 * An estimate from the bounds alone, the critical path and the work over all cores: for graphs of so many groups that
 * replaying them would take too long, and for when there is no time. It lies a little above both where they are alike.
 */

const SD = 0.15;
/** The larger, the nearer to the larger bound. */
const POWER = 4;

export function* roughly(
  run: Run,
  { ordered }: Ordered,
  expected: Expected,
  { atOnce, units, arrivals, aheadMs }: Capacity,
): Steps<Estimate> {
  const paths = new Float64Array(run.groups.length);
  const all = units + arrivals.reduce((sum, each) => sum + each.units, 0);
  let work = 0;
  let path = 0;
  // of a graph's groups most are of one shape
  let shape: Shape | undefined;
  let slots = 1;
  for (let i = ordered.length - 1; i >= 0; i -= 1) {
    if (i % PIECE === 0) yield;
    const group = ordered[i]!;
    if (!isOpen(group)) continue;
    const { index, count, done, failed, canceled, dependents } = group;
    const ms = group.expectedMs < 0 && run.meanMs >= 0 ? run.meanMs : expected.ofGroup(run, group);
    let after = 0;
    for (const { group: next } of dependents) after = Math.max(after, paths[next]!);
    paths[index] = after + ms;
    path = Math.max(path, paths[index]!);
    const mine = shapeOfRow(group, group.first);
    if (mine !== shape) [shape, slots] = [mine, Math.max(1, atOnce(mine))];
    work += ((count - done - failed - canceled) * ms) / slots;
  }
  const cores = all > 0 ? work / all : work;
  const wait = arrivals.length > 0 && units === 0 ? arrivals[0]!.waits[arrivals[0]!.waits.length >> 1]! : 0;
  const least = Math.max(path, cores);
  const ms = (path ** POWER + cores ** POWER) ** (1 / POWER) + aheadMs + wait;
  return calibrated({ mean: Math.log(Math.max(1, ms)), sd: SD }, least);
}
