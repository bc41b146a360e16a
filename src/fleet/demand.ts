import { type Resources, amountOf, fromUnits } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";
import { concurrency } from "../scheduler/capacity.ts";
import type { Demand } from "./snapshot.ts";

/** Which of a cluster's fleets should serve the waiting tasks. */

export interface WaitingTasks {
  readonly shape: Shape;
  readonly waiting: number;
  readonly sample: { readonly tasks: number; readonly knownMs: number; readonly unknown: number };
}

export interface Candidate {
  readonly cluster: string;
  readonly queue: string;
  readonly nodes: number;
  /** What one node offers; undefined while unknown. */
  readonly offer: Resources | undefined;
  /** No agent has reported yet what a node has: there may be any amount of what `offer` does not name. */
  readonly untold: boolean;
  /** Seconds that a task gets on a pilot that has just started. */
  readonly lifetime: number;
  readonly max: number;
  readonly unknownTaskDuration: number;
  /** Its pilots do not start: other fleets come first. */
  readonly failing: boolean;
  /** It has pilots, or has asked for some. */
  readonly living: boolean;
}

/** The part of a shape's resources that can be compared with an offer. */
const comparable = ({ resources }: Shape, offer: Resources): Resources =>
  Object.fromEntries(Object.entries(resources).filter(([name]) => Object.hasOwn(offer, name)));

/** How many tasks of a shape one pilot runs at once; one per node while nothing is known about its nodes. */
export const slotsOf = (
  shape: Shape,
  { nodes, offer, untold }: Pick<Candidate, "nodes" | "offer" | "untold">,
): number => {
  const perNode = offer === undefined ? 1 : concurrency(offer, untold ? comparable(shape, offer) : shape.resources);
  const { ranks } = shape;
  if (ranks === undefined) return perNode * nodes;
  if (offer === undefined) return ranks.nodes === undefined || ranks.nodes <= nodes ? 1 : 0;
  if (ranks.nodes === undefined) return Math.floor((perNode * nodes) / ranks.count);
  return Math.floor(nodes / ranks.nodes) * Math.floor(perNode / Math.ceil(ranks.count / ranks.nodes));
};

const mayRun = (shape: Shape, fleet: Candidate, defaultCluster: string): boolean =>
  (shape.cluster ?? defaultCluster) === fleet.cluster &&
  (shape.queue ?? fleet.queue) === fleet.queue &&
  shape.timeRequest <= fleet.lifetime;

/** Whether a fleet could run a shape at all. */
export const canRun = (shape: Shape, fleet: Candidate, defaultCluster: string): boolean =>
  mayRun(shape, fleet, defaultCluster) && slotsOf(shape, fleet) > 0;

/** How many tasks of a shape what is shared lets begin now. */
const roomIn = (shared: Resources, { resources, ranks, alone }: Shape): number => {
  let most = alone === true ? 1 : Infinity;
  for (const name in shared) {
    const asked = amountOf(resources, name) * (ranks?.count ?? 1);
    if (asked > 0) most = Math.min(most, Math.max(0, Math.floor(shared[name]! / asked)));
  }
  return most;
};

/**
 * The demand on each fleet, in their order. Tasks that several queues could run go to the first of them, up to what it
 * could ever run at once, and the rest to the next, so that not every queue starts pilots for all of them.
 * `shared` is what is free of what all agents of the cluster share. Tasks that wait for it alone need no pilot; but where
 * no pilot could run them yet, one starts, so that they are not passed over for ever.
 */
export const demandOn = (
  waiting: readonly WaitingTasks[],
  fleets: readonly Candidate[],
  defaultCluster: string,
  shared: Resources = {},
): Demand[][] => {
  const free: Record<string, number> = { ...shared };
  const out: Demand[][] = fleets.map(() => []);
  const order = [...fleets.keys()].toSorted((a, b) => Number(fleets[a]!.failing) - Number(fleets[b]!.failing));
  for (const { shape, waiting: all, sample } of waiting) {
    const able = order.filter((index) => mayRun(shape, fleets[index]!, defaultCluster));
    const slotsIn = able.map((index) => slotsOf(shape, fleets[index]!));
    const last = slotsIn.findLastIndex((slots) => slots > 0);
    if (last < 0) continue;
    const served = able.some((index, nth) => slotsIn[nth]! > 0 && fleets[index]!.living);
    let left = Math.min(all, Math.max(roomIn(free, shape), served ? 0 : 1));
    for (const name in free) free[name]! -= left * amountOf(shape.resources, name) * (shape.ranks?.count ?? 1);
    for (let nth = 0; nth <= last; nth += 1) {
      const index = able[nth]!;
      const fleet = fleets[index]!;
      const slots = slotsIn[nth]!;
      if (slots === 0) continue;
      const mine = nth === last ? left : Math.min(left, slots * fleet.max);
      left -= mine;
      const expected =
        sample.tasks === 0
          ? fleet.unknownTaskDuration
          : (sample.knownMs / 1000 + sample.unknown * fleet.unknownTaskDuration) / sample.tasks;
      const cores = fromUnits("cpus", amountOf(shape.resources, "cpus")) * (shape.ranks?.count ?? 1);
      if (mine > 0) out[index]!.push({ waiting: mine, slots, timeRequest: shape.timeRequest, expected, cores });
    }
  }
  return out;
};
