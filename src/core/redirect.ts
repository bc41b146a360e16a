import { FRACTION, type Resources, amountOf } from "./resources.ts";
import type { RankSpec } from "./spec.ts";

/**
 * Tasks that were meant for a cluster and run on this machine. Decided when they were submitted, and history since: what
 * the machine had then is part of the decision, so that replay gives the same shapes.
 */
export interface Redirect {
  /** The cluster they were meant for, and why it cannot be used; absent: somebody sent them here on purpose. */
  readonly from?: string;
  readonly cause?: string;
  /** What this machine had, in units. */
  readonly here: Resources;
}

export interface Mapped {
  readonly resources: Resources;
  /** Something it asks for is not here, or there is not enough of it: nothing else may run beside it. */
  readonly alone: boolean;
}

/** Cores for each of several ranks that all run at once, where together they ask for too many. */
const coresFor = (here: number, ranks: number): number => {
  const cores = Math.floor(here / FRACTION);
  if (cores >= ranks) return Math.floor(cores / ranks) * FRACTION;
  // a share of a core lies within one core
  return cores === 0 ? Math.floor(here / ranks) : Math.floor(FRACTION / Math.ceil(ranks / cores));
};

/** What is left of a resource of which a task asks for too much; the rest is dropped, as it will be alone. */
const reduced = (name: string, here: number, ranks: number): number => {
  if (name === "cpus") return coresFor(here, ranks);
  return name === "gpus" ? Math.floor(here / FRACTION / ranks) * FRACTION : 0;
};

/** What a task asks for, in terms of this machine; temporary space that nobody counts is there. */
export const mapHere = (here: Resources, resources: Resources, ranks: RankSpec | undefined): Mapped => {
  const count = ranks?.count ?? 1;
  const mapped: Record<string, number> = {};
  let alone = false;
  for (const name in resources) {
    const asked = resources[name]!;
    const has = amountOf(here, name);
    if (asked * count <= has || (name === "tmp" && !Object.hasOwn(here, name))) mapped[name] = asked;
    else {
      alone = true;
      const left = reduced(name, has, count);
      if (left > 0) mapped[name] = left;
    }
  }
  return { resources: mapped, alone };
};
