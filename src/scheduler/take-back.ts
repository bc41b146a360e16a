import type { Shape } from "../core/run.ts";
import { type AgentLoad, placedOf, room } from "./agent-load.ts";

/** What agents should give back of tasks they have not begun, for free slots elsewhere. Pure. */

/** Ask an agent to give back tasks it has not begun, for another that is idle. */
export interface TakeBack {
  readonly agent: number;
  readonly count: number;
}

type Belongs = (agent: AgentLoad, shape: Shape) => boolean;

/** The shape of what waits at an agent that has a backlog. */
const backlogShape = (agent: AgentLoad): Shape => {
  for (const placed of agent.placed.values()) if (placed.count > placed.slotted) return placed.shape;
  throw new RangeError("a backlog of no shape");
};

const freeSlots = (among: readonly AgentLoad[], shape: Shape, belongs: Belongs): { slots: number; agents: number } => {
  const rooms = among
    .filter((agent) => belongs(agent, shape))
    .map((agent) => Math.max(0, room(agent, placedOf(agent, shape))));
  return { slots: rooms.reduce((sum, each) => sum + each, 0), agents: rooms.filter((each) => each > 0).length };
};

/** Donors have a backlog, the others none. */
export const takeBacks = (donors: Iterable<AgentLoad>, others: readonly AgentLoad[], belongs: Belongs): TakeBack[] => {
  if (others.length === 0) return [];
  const rooms = new Map<string, { slots: number; agents: number }>();
  const asks: TakeBack[] = [];
  for (const donor of donors) {
    const shape = backlogShape(donor);
    let free = rooms.get(shape.key);
    if (free === undefined) rooms.set(shape.key, (free = freeSlots(others, shape, belongs)));
    if (free.slots <= 0) continue;
    const count = Math.min(Math.ceil(donor.backlog * (free.agents / (free.agents + 1))), free.slots);
    free.slots -= count;
    asks.push({ agent: donor.offer.id, count });
  }
  return asks;
};
