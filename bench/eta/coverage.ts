import { FRACTION } from "../../src/core/resources.ts";
import { estimate, replays, type Estimate } from "../../src/eta/estimate.ts";
import { openWork } from "../../src/eta/open-work.ts";
import { inOrder } from "../../src/eta/order.ts";
import { whole } from "../../src/eta/steps.ts";
import { createExpected } from "../../src/learned/expected.ts";
import { createLearned } from "../../src/learned/learned.ts";
import { concurrency } from "../../src/scheduler/capacity.ts";
import { type Driven, coresOf, drive } from "./drive.ts";
import { type Family, drawWorld, teachEarlier } from "./world.ts";

/** One simulated run: what was estimated at a tenth of its work, and what it took from there. */
export interface Asked {
  readonly seed: number;
  readonly family: Family;
  readonly earlier: number;
  readonly estimate: Estimate;
  /** The raw replays, to calibrate by. */
  readonly mean: number;
  readonly sd: number;
  readonly truth: number;
  /** As it was before: the time so far over the share of tasks so far. */
  readonly linear: number;
}

const SHARE = 0.1;
const BEGUN = 1_700_000_000_000;

const allWork = ({ run }: Driven, durationOf: (row: number) => number): number => {
  let sum = 0;
  for (let row = 0; row < run.total; row += 1) sum += durationOf(row) * coresOf(run, row);
  return sum;
};

export const ask = (seed: number): Asked => {
  const world = drawWorld(seed);
  const expected = createExpected(createLearned({ identities: 20_000, templates: 4_000_000 }), {
    defaultCluster: "local",
    unknownMs: () => 60_000,
  });
  for (let day = 1; day <= world.earlier; day += 1) teachEarlier(world, day, expected);
  const durationOf = world.durationOf(0);
  const driven = drive({ spec: world.spec, agents: world.agents, expected, durationOf, begun: BEGUN });
  const { run } = driven;
  const tenth = SHARE * allWork(driven, (row) => durationOf(run, row));
  const now = driven.until(() => driven.done >= tenth);
  const work = openWork(run, whole(inOrder(run)), now, expected, {
    atOnce: ({ resources }) =>
      world.agents.reduce((sum, { cores }) => sum + concurrency({ cpus: cores * FRACTION }, resources), 0),
    units: 1,
    arrivals: [],
    aheadMs: 0,
  });
  if (work === undefined) throw new Error("a simulated run fits nowhere");
  const ended = run.groups.reduce((sum, { done }) => sum + done, 0);
  const { mean, sd } = whole(replays(work, seed));
  return {
    seed,
    family: world.family,
    earlier: world.earlier,
    estimate: estimate(work, seed),
    mean,
    sd,
    linear: ((now - BEGUN) * (run.total - ended)) / Math.max(1, ended),
    truth: Math.max(1, driven.until() - now),
  };
};
