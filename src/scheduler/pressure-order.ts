import { FRACTION, amountOf } from "../core/resources.ts";
import type { Group, Run } from "../core/run.ts";
import type { GroupOfRun, Order } from "./order.ts";
import { type Pressures, createPressures } from "./pressure.ts";

/**
 * Within a run the highest pressure goes first. Between runs the earliest start does: the run's end less the pressure,
 * never before the run came. The end is fixed by the first estimate, and every run that comes later starts later: so
 * nothing waits for ever (decision 0029).
 */

interface Followed {
  readonly run: Run;
  readonly pressures: Pressures;
  /** When it should be over. */
  end: number;
}

/** What one task that has ended pays for, in groups and dependencies looked at; and what may be owed for a start. */
const EARNED = 4;
const ADVANCE = 20_000;

/** Milliseconds of work over cpus, in integer units. */
const workOf = ({ groups }: Run, expected: (group: Group) => number): number => {
  let work = 0;
  for (const group of groups) {
    const { resources, ranks } = group.shape;
    work += group.count * expected(group) * (amountOf(resources, "cpus") || FRACTION) * (ranks?.count ?? 1);
  }
  return work;
};

export const createPressureOrder = (expected: (run: Run, group: Group) => number): Order => {
  const runs = new Map<Run, Followed>();
  const stale = new Set<Followed>();
  /** Those whose end is not fixed yet. */
  const open = new Set<Followed>();
  let earned = ADVANCE;
  let cpus = 0;

  /** Without agents nobody knows how long work takes beyond its longest path. */
  const estimate = (run: Run, pressures: Pressures): number => {
    const work = cpus === 0 ? 0 : workOf(run, (group) => expected(run, group)) / cpus;
    return run.submitted + Math.max(pressures.longest(), work);
  };

  const follow = (run: Run): Followed => {
    const pressures = createPressures(run, expected);
    const followed: Followed = { run, pressures, end: estimate(run, pressures) };
    runs.set(run, followed);
    if (cpus === 0) open.add(followed);
    return followed;
  };

  /** Ends are fixed as soon as there are agents. */
  const fixEnds = (): GroupOfRun[] => {
    if (cpus === 0) return [];
    const fixed = [...open];
    open.clear();
    for (const followed of fixed) followed.end = estimate(followed.run, followed.pressures);
    return fixed.flatMap(({ run }) => run.groups.map((group) => ({ run, group })));
  };

  return {
    rankOf: (run, group) => {
      const { pressures, end } = runs.get(run) ?? follow(run);
      const pressure = pressures.of(group);
      return { start: Math.max(run.submitted, end - pressure), pressure };
    },
    changed: (run, group) => {
      const followed = runs.get(run);
      if (followed === undefined) return;
      followed.pressures.touch(group);
      stale.add(followed);
    },
    forget: (run) => {
      const followed = runs.get(run);
      if (followed === undefined) return;
      runs.delete(run);
      stale.delete(followed);
      open.delete(followed);
    },
    resized: (by) => {
      cpus += by;
    },
    renew: (ended) => {
      earned = Math.min(ADVANCE, earned + ended * EARNED);
      const changed = fixEnds();
      for (const followed of stale) {
        if (earned <= 0) break;
        stale.delete(followed);
        const renewed = followed.pressures.renew();
        earned -= renewed.cost;
        for (const group of renewed.changed) changed.push({ run: followed.run, group });
      }
      return changed;
    },
  };
};
