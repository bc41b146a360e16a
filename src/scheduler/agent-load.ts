import type { Resources } from "../core/resources.ts";
import type { Bucket, Shape } from "../core/run.ts";
import { concurrency } from "./capacity.ts";
import { type Entry, type FitList, NOTHING_BARRED, type Room, createFitList } from "./fit-list.ts";
import type { PilotId } from "../core/ids.ts";
import { PlacedTable } from "./placed-table.ts";

/**
 * What an agent offers and what it has, counted per shape: slotted tasks fit into its resources together, the others
 * are its backlog and take the slots that become free, as the agent itself does.
 */

export interface AgentOffer {
  readonly id: number;
  readonly resources: Resources;
  readonly cluster: string;
  readonly queue: string;
  /** Ranks of one task stay within one pilot; 0: agents started by hand count as one pilot. */
  readonly pilot: PilotId;
  /** The agents of one task are ordered by this name. */
  readonly host?: string;
  /** When its pilot ends, in server milliseconds; Infinity if never. */
  readonly endsAt: number;
}

interface Arrival {
  /** When tasks of it began to wait there, among all of the agent's. */
  arrived: number;
}

/** The tasks of one shape that an agent has. */
export interface Placed extends Entry, Arrival {
  readonly shape: Shape;
  /** Of its shape. */
  readonly hash: number;
  /** How many of them the agent runs at once when empty. */
  readonly most: number;
  count: number;
  slotted: number;
  /** What the last ones placed were expected to take; -1 if unknown. */
  expectedMs: number;
  /** The next one in the table. */
  other: Placed | undefined;
}

/** The tasks of one bucket that have slots and each ask for amounts of their own: counted together, reserved exactly. */
interface OwnSlots {
  /** No agent like this one runs more of them at once. */
  readonly most: number;
  count: number;
  expectedMs: number;
}

export interface AgentLoad {
  readonly offer: AgentOffer;
  endsAt: number;
  /** Only shapes that it has tasks of. Of shapes that come from items, those that wait there for a slot, or did. */
  readonly placed: PlacedTable;
  /** All other tasks whose shapes come from items, by bucket. */
  readonly own: Map<Bucket, OwnSlots>;
  /** The shapes with tasks that wait there for a slot, in order of arrival. */
  readonly queued: FitList<Placed, Arrival>;
  arrivals: number;
  /** What the slotted tasks leave. */
  readonly free: Record<string, number>;
  readonly room: Room;
  count: number;
  backlog: number;
  /** The backlog in multiples of what the agent runs at once. */
  backlogLoad: number;
  /** When it was last given something, in server milliseconds. */
  givenAt: number;
  /** Gets nothing new: suspect, draining, or of an older version. */
  paused: boolean;
  /** Tasks may be handed to it ahead. */
  ahead: boolean;
  /** It shares something with others: accounts cover it. */
  shares: boolean;
  /** It may have got room since it was last looked at: the pool lists it. */
  roomy: boolean;
}

export const createLoad = (offer: AgentOffer): AgentLoad => {
  const free = { ...offer.resources };
  return {
    offer,
    endsAt: offer.endsAt,
    placed: new PlacedTable(),
    own: new Map(),
    queued: createFitList<Placed, Arrival>((a, b) => a.arrived < b.arrived),
    arrivals: 0,
    free,
    room: { free, seconds: Infinity, barred: NOTHING_BARRED },
    count: 0,
    backlog: 0,
    backlogLoad: 0,
    givenAt: -Infinity,
    paused: false,
    ahead: false,
    shares: false,
    roomy: false,
  };
};

/** What an agent has of a shape, if it has some. */
export const knownOf = (agent: AgentLoad, shape: Shape): Placed | undefined => agent.placed.find(shape);

/** What an agent has of a shape; kept only while it has some. */
export const placedOf = (agent: AgentLoad, shape: Shape): Placed => knownOf(agent, shape) ?? newPlaced(agent, shape);

export const newPlaced = (agent: AgentLoad, shape: Shape): Placed => ({
  shape,
  hash: shape.hash,
  asks: shape.resources,
  timeRequest: shape.timeRequest,
  most: concurrency(agent.offer.resources, shape.resources),
  count: 0,
  slotted: 0,
  expectedMs: -1,
  leaf: -1,
  arrived: 0,
  other: undefined,
});

const reserve = ({ free }: AgentLoad, asks: Resources, count: number): void => {
  for (const name in asks) free[name] = (free[name] ?? 0) - count * asks[name]!;
};

const slot = (agent: AgentLoad, placed: Placed, count: number): void => {
  placed.slotted += count;
  reserve(agent, placed.asks, count);
};

const room = (agent: AgentLoad, placed: Placed): number =>
  Math.min(concurrency(agent.free, placed.asks), placed.most - placed.slotted);

/** How many more tasks of a shape fit into an agent's slots, which has these of it. */
export const roomBeside = (agent: AgentLoad, shape: Shape, placed: Placed | undefined): number =>
  placed === undefined ? concurrency(agent.free, shape.resources) : room(agent, placed);

const setBacklog = (agent: AgentLoad, placed: Placed, change: number): void => {
  agent.backlog += change;
  const waiting = placed.count - placed.slotted;
  if (waiting > 0 && placed.leaf < 0) {
    placed.arrived = agent.arrivals += 1;
    agent.queued.add(placed);
  }
  if (waiting === 0 && placed.leaf >= 0) {
    agent.queued.remove(placed);
    placed.leaf = -1;
  }
  // starting again from zero keeps rounding from piling up
  agent.backlogLoad = agent.backlog === 0 ? 0 : agent.backlogLoad + change / Math.max(1, placed.most);
};

/** `fitting`: how many of them are known to fit into its slots. */
export const add = (agent: AgentLoad, placed: Placed, count: number, fitting = 0): void => {
  if (placed.count === 0) agent.placed.add(placed);
  placed.count += count;
  agent.count += count;
  const slotted = fitting >= count ? count : Math.max(0, Math.min(count, room(agent, placed)));
  slot(agent, placed, slotted);
  if (count > slotted) setBacklog(agent, placed, count - slotted);
};

/** Tasks of the backlog take the slots that others leave, as on the agent itself. */
const promote = (agent: AgentLoad): void => {
  let placed = agent.queued.next(undefined, agent.room);
  while (placed !== undefined) {
    const moved = Math.max(0, Math.min(placed.count - placed.slotted, room(agent, placed)));
    if (moved > 0) {
      slot(agent, placed, moved);
      setBacklog(agent, placed, -moved);
    }
    placed = agent.queued.next(placed, agent.room);
  }
};

/** Takes tasks away from an agent, those that wait there first. */
export const release = (agent: AgentLoad, placed: Placed, count: number): void => {
  const left = Math.min(count, placed.count);
  const waiting = Math.min(left, placed.count - placed.slotted);
  placed.count -= left;
  agent.count -= left;
  // slots first: the backlog counts the tasks that have none
  if (left > waiting) slot(agent, placed, waiting - left);
  if (waiting > 0) setBacklog(agent, placed, -waiting);
  if (placed.count === 0) agent.placed.remove(placed);
  if (left > waiting && agent.backlog > 0) promote(agent);
};

/** How many more tasks fit into an agent's slots whose shape comes from an item. */
export const roomForOwn = (agent: AgentLoad, { bucket, resources }: Shape): number => {
  const slots = agent.own.get(bucket);
  const most = concurrency(agent.free, resources);
  return slots === undefined ? most : Math.min(most, slots.most - slots.count);
};

/** Such tasks, which fit. */
export const addOwn = (agent: AgentLoad, { bucket, resources }: Shape, count: number, expectedMs: number): void => {
  let slots = agent.own.get(bucket);
  if (slots === undefined)
    agent.own.set(bucket, (slots = { most: concurrency(agent.offer.resources, bucket.least), count: 0, expectedMs }));
  slots.count += count;
  slots.expectedMs = expectedMs;
  agent.count += count;
  reserve(agent, resources, count);
};

/** Takes one such task away; false if it has none. */
export const releaseOwn = (agent: AgentLoad, { bucket, resources }: Shape): boolean => {
  const slots = agent.own.get(bucket);
  if (slots === undefined) return false;
  slots.count -= 1;
  if (slots.count === 0) agent.own.delete(bucket);
  agent.count -= 1;
  reserve(agent, resources, -1);
  if (agent.backlog > 0) promote(agent);
  return true;
};

/** The share of its slots that tasks have, and the seconds until all are done; `unknown` seconds where nothing is known. */
export const occupancyOf = (agent: AgentLoad | undefined, unknown: number): { used: number; seconds: number } => {
  let used = 0;
  let seconds = 0;
  for (const { count, most, expectedMs: each } of [...(agent?.placed ?? []), ...(agent?.own.values() ?? [])]) {
    used += count / Math.max(1, most);
    seconds += (count / Math.max(1, most)) * (each < 0 ? unknown : each / 1000);
  }
  return { used, seconds };
};
