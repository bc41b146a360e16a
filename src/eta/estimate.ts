import { createRandom } from "./random.ts";
import { orderOf, replay } from "./replay.ts";
import { type Steps, whole } from "./steps.ts";
import { type OpenGroup, type OpenWork, leastMs, pathsOf } from "./work.ts";

/** When a run ends: milliseconds from now that it takes at most, with these probabilities. */
export interface Estimate {
  readonly p10: number;
  readonly p50: number;
  readonly p90: number;
}

/**
 * How the truth lay beside the replays, in standard deviations of their logarithms: measured on the tuning seeds of
 * `npm run bench -- --only eta`, and checked there on others.
 */
const CALIBRATED: Estimate = { p10: -1.44, p50: 0.07, p90: 2 };
/** Replays never agree better than this. */
const LEAST_SD = 0.02;

/** How much work an estimate may be, in ends of tasks; and how many replays it is made of. */
const MOST_ENDS = 20_000;
const MOST_REPLAYS = 32;
const FEWEST_REPLAYS = 8;
/** More at once are taken together, but never so many that fewer tasks or slots than these are left. */
const MOST_AT_ONCE = 256;
const LEAST_TASKS = 16;
const LEAST_SLOTS = 4;
/** About how many ends one replay has. */
const endsOf = ({ groups, units }: OpenWork): number => {
  let sum = 0;
  for (const { waiting, running, atOnce } of groups) {
    const slots = Math.max(1, atOnce * Math.max(1, units));
    sum += running.length + Math.min(waiting, slots * 2 * (1 + Math.log2(1 + waiting / slots)));
  }
  return sum;
};

/** Several tasks as one, where there are so many tasks and slots that single ones do not matter. */
const coarser = (work: OpenWork): OpenWork => {
  const units = work.units + work.arrivals.reduce((sum, each) => sum + each.units, 0);
  const slots = work.groups.reduce((most, { atOnce }) => Math.max(most, atOnce * units), 0);
  const by = Math.max(slots / MOST_AT_ONCE, (endsOf(work) * FEWEST_REPLAYS) / MOST_ENDS);
  if (by <= 1) return work;
  const thinned = (group: OpenGroup): OpenGroup => {
    const tasks = group.waiting + group.running.length;
    const factor = Math.max(1, Math.min(by, tasks / LEAST_TASKS, (group.atOnce * units) / LEAST_SLOTS));
    return {
      ...group,
      waiting: Math.ceil(group.waiting / factor),
      running: group.running.filter((_, i) => Math.floor(i / factor) !== Math.floor((i - 1) / factor)),
      atOnce: group.atOnce / factor,
    };
  };
  return { ...work, groups: work.groups.map(thinned) };
};

/** Mean and standard deviation of the logarithms of what replays took. */
interface Logarithms {
  readonly mean: number;
  readonly sd: number;
}

export function* replays(given: OpenWork, seed: number): Steps<Logarithms> {
  const work = coarser(given);
  const order = orderOf(work.groups, pathsOf(work.groups));
  const rank = new Uint32Array(order.length);
  for (const [place, group] of order.entries()) rank[group] = place;
  const random = createRandom(seed);
  const count = Math.max(FEWEST_REPLAYS, Math.min(MOST_REPLAYS, Math.floor(MOST_ENDS / Math.max(1, endsOf(work)))));
  let sum = 0;
  let squares = 0;
  for (let n = 0; n < count; n += 1) {
    yield;
    const took = Math.log(Math.max(1, replay(work, rank, random)));
    sum += took;
    squares += took * took;
  }
  const mean = sum / count;
  return { mean, sd: Math.sqrt(Math.max(0, squares / count - mean * mean)) };
}

/** From mean and standard deviation of logarithms, and a bound below. */
export const calibrated = ({ mean, sd }: Logarithms, least: number): Estimate => {
  const at = (z: number): number => Math.exp(mean + z * Math.max(LEAST_SD, sd));
  const p50 = Math.max(at(CALIBRATED.p50), least);
  return { p10: Math.min(at(CALIBRATED.p10), p50), p50, p90: Math.max(at(CALIBRATED.p90), p50) };
};

export function* estimateSteps(work: OpenWork, seed: number): Steps<Estimate> {
  return calibrated(yield* replays(work, seed), leastMs(work));
}

export const estimate = (work: OpenWork, seed: number): Estimate => whole(estimateSteps(work, seed));
