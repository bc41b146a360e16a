import { formatResource } from "../core/quantities.ts";
import { forEachHeld } from "../core/held.ts";
import { type Resources, amountOf } from "../core/resources.ts";
import { type Shape, groupOf, indexOfRow, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";

/** Which amount of what a machine or a cluster has in all a task waits for, and who holds it. */

/** With ranks, all of them. */
const neededOf = ({ resources, ranks }: Shape, name: string): number => amountOf(resources, name) * (ranks?.count ?? 1);

/** How many holders are named. */
const MOST_NAMED = 3;

/** Tasks with agents that hold something that is shared. */
const countHolders = (state: State, agents: ReadonlySet<number>, capacity: Resources): number => {
  let count = 0;
  for (const run of state.live) {
    forEachHeld(run, agents, (row) => {
      const shape = shapeOfRow(groupOf(run.groups, row), row);
      if (Object.keys(capacity).some((name) => neededOf(shape, name) > 0)) count += 1;
    });
  }
  return count;
};

const holdersText = (state: State, agents: ReadonlySet<number>, name: string): string => {
  const holders: { readonly id: string; readonly units: number }[] = [];
  for (const run of state.live) {
    forEachHeld(run, agents, (row) => {
      const units = neededOf(shapeOfRow(groupOf(run.groups, row), row), name);
      if (units > 0) holders.push({ id: `${run.id}.${indexOfRow(run, row)}`, units });
    });
  }
  const named = holders.toSorted((a, b) => b.units - a.units).slice(0, MOST_NAMED);
  const more = holders.length - named.length;
  const text = named.map(({ id, units }) => `${id} has ${formatResource(name, units)}`).join(", ");
  return more > 0 ? `${text}, and ${more} more tasks have some` : text;
};

export interface SharedFacts {
  readonly state: State;
  /** What there is of it in all, and what of that is free. */
  readonly capacity: Resources;
  readonly free: Resources;
  /** The agents that share it. */
  readonly agents: ReadonlySet<number>;
  /** `this machine`, or `cluster hpc`. */
  readonly of: string;
}

/** Undefined when it waits for nothing that is shared. */
export const sharedWait = ({ state, capacity, free, agents, of }: SharedFacts, shape: Shape): string | undefined => {
  if (shape.alone === true) {
    const others = countHolders(state, agents, capacity);
    return others === 0
      ? undefined
      : `it must be alone on ${of}, where ${others} other task${others === 1 ? " is" : "s are"}`;
  }
  const lacking = Object.keys(capacity).filter((name) => neededOf(shape, name) > Math.max(0, amountOf(free, name)));
  if (lacking.length === 0) return undefined;
  return lacking
    .map((name) => {
      const left = formatResource(name, Math.max(0, amountOf(free, name)));
      const holders = holdersText(state, agents, name);
      const all = `${left} of ${formatResource(name, capacity[name]!)} that ${of} has are free`;
      return `it waits for ${name}: ${all}${holders === "" ? "" : ` (${holders})`}`;
    })
    .join("; ");
};
