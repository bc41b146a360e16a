import { type Shape, keyOf } from "../core/run.ts";
import type { AgentLoad, Placed } from "./agent-load.ts";
import type { AgentPool } from "./agent-pool.ts";
import type { AgentId } from "../core/ids.ts";

/** Which tasks that have not begun agents should give back, for free slots elsewhere. Pure. */

/** Ask an agent to give back tasks it has not begun, for an idle agent. */
export interface TakeBack {
  readonly agent: AgentId;
  readonly count: number;
}

/** Whom to ask now, and after how many milliseconds to look again at the agents left alone. */
export interface Rebalance {
  readonly asks: readonly TakeBack[];
  readonly againMs: number | undefined;
}

export const NOTHING_TO_ASK: Rebalance = { asks: [], againMs: undefined };

/** A backlog that should be done this soon is done before it could begin elsewhere: asking for it is wasted work. */
const HANDED_OVER_MS = 10;
/** How long to believe that: expectations come from other tasks. */
const PATIENCE_MS = 200;

/** How long to leave an agent alone that should finish its backlog in a moment; 0 for not at all. */
const patience = (agent: AgentLoad, { expectedMs }: Placed, now: number): number =>
  expectedMs >= 0 && agent.backlogLoad * expectedMs < HANDED_OVER_MS
    ? Math.max(0, Math.min(PATIENCE_MS, agent.givenAt + PATIENCE_MS - now))
    : 0;

/** How agents of a pool stand to a shape. */
type Where = Pick<AgentPool, "belongs" | "roomFor">;

/** The first tasks in the backlog of an agent that has one. */
const backlogOf = (agent: AgentLoad): Placed => {
  const first = agent.queued.first();
  if (first !== undefined) return first;
  throw new RangeError("a backlog of no shape");
};

const freeSlots = (among: readonly AgentLoad[], shape: Shape, pool: Where): { slots: number; agents: number } => {
  const rooms = among
    .filter((agent) => pool.belongs(agent, shape))
    .map((agent) => Math.max(0, pool.roomFor(agent, shape)));
  return { slots: rooms.reduce((sum, each) => sum + each, 0), agents: rooms.filter((each) => each > 0).length };
};

/**
 * Donors are the agents with a backlog; free slots are sought at those without one. `patient`: all donors were left alone, so
 * that nobody is asked before `againMs`, whatever slots become free, unless agents are given more.
 */
const takeBacks = (
  donors: Iterable<AgentLoad>,
  all: Iterable<AgentLoad>,
  pool: Where,
  now: number,
): Rebalance & { readonly patient: boolean } => {
  const rooms = new Map<string, { slots: number; agents: number }>();
  const asks: TakeBack[] = [];
  let againMs: number | undefined;
  let patient = true;
  let others: AgentLoad[] | undefined;
  for (const donor of donors) {
    const placed = backlogOf(donor);
    const waitMs = patience(donor, placed, now);
    if (waitMs > 0) {
      againMs = Math.min(againMs ?? waitMs, waitMs);
      continue;
    }
    patient = false;
    others ??= [...all].filter((agent) => !agent.paused && agent.backlog === 0);
    const { shape } = placed;
    const key = keyOf(shape);
    let free = rooms.get(key);
    if (free === undefined) rooms.set(key, (free = freeSlots(others, shape, pool)));
    if (free.slots <= 0) continue;
    const count = Math.min(Math.ceil(donor.backlog * (free.agents / (free.agents + 1))), free.slots);
    free.slots -= count;
    asks.push({ agent: donor.offer.id, count });
  }
  return { asks, againMs, patient };
};

/** Remembers for how long all donors are left alone: with a thousand of them, looking costs more than a message. */
export const createRebalancing = (pool: AgentPool) => {
  let patientUntil = -Infinity;
  return {
    /** Agents were given something. */
    given: (): void => {
      patientUntil = -Infinity;
    },
    look: (now: number): Rebalance => {
      if (pool.backlogged.size === 0) return NOTHING_TO_ASK;
      // a clock that was set back keeps nobody waiting
      if (now < patientUntil && patientUntil - now <= PATIENCE_MS) return { asks: [], againMs: patientUntil - now };
      const { asks, againMs, patient } = takeBacks(pool.backlogged, pool.agents.values(), pool, now);
      if (patient && againMs !== undefined) patientUntil = now + againMs;
      return { asks, againMs };
    },
  };
};
