import type { RowRanges } from "../core/events.ts";
import { type Group, type Run, type Shape, expectedMs, groupOf, shapeOfRow } from "../core/run.ts";
import { type AccountRule, createAccounts } from "./account.ts";
import { type AgentLoad, type AgentOffer, knownOf, occupancyOf, placedOf } from "./agent-load.ts";
import { type AgentPool, createAgentPool } from "./agent-pool.ts";
import { DEFAULT_PREFETCH, type PrefetchPolicy } from "./capacity.ts";
import type { RankPlacement } from "./gangs.ts";
import { type JobQueue, createJobQueue } from "./job-queue.ts";
import { createKept } from "./keeping.ts";
import type { Order, Rank } from "./order.ts";
import type { Around, Head } from "./ahead.ts";
import { type Assignment, type Pass, type PlacedRows, fillBacklogs, fillSlots, handAhead } from "./pass.ts";
import { createPressureOrder } from "./pressure-order.ts";
import { type Reservations, createReservations } from "./reservations.ts";
import { NOTHING_TO_ASK, type Rebalance, createRebalancing } from "./take-back.ts";
import { type Store, createStore } from "./store.ts";
import type { WaitingShape } from "./tallies.ts";
import { type Resources, amountOf } from "../core/resources.ts";
import type { AgentId, Row } from "../core/ids.ts";

/**
 * Which agent gets which tasks. The scheduler holds nothing that the state does not: it is rebuilt after a restart.
 *
 * Each agent's tasks are of two kinds, counted per shape: slotted ones fit into its resources together, the others wait
 * there for a slot (its backlog, the prefetch), so that a free slot never waits for a round trip. First every agent's
 * slots are filled, busy agents before idle ones, so that pilots nobody needs run empty; then the backlogs, each agent
 * up to its share of all tasks that have not begun, here or at agents: an agent that has its share leaves the rest to
 * the others, so that a few large assignments do the work of many small ones.
 */

export type { AccountRule } from "./account.ts";
export type { AgentOffer } from "./agent-load.ts";
export type { Rank } from "./order.ts";
export type { JobBucket, JobHead, JobQueue, JobTasks } from "./job-queue.ts";
export type { Assignment } from "./pass.ts";
export type { Rebalance, TakeBack } from "./take-back.ts";
export type { WaitingShape } from "./tallies.ts";

export interface Scheduler {
  /** What waits to become jobs of its own. */
  readonly jobs: JobQueue;
  /** What such jobs take of what agents share. */
  readonly reservations: Reservations;
  ready(run: Run, from: number, count: number): void;
  dropRun(run: Run): void;
  /** Takes all that waits of a run out of the queues; it will be ready again at once. */
  unqueue(run: Run): void;
  /** The tasks of a group are expected to take another time. */
  expectationChanged(run: Run, group: Group): void;
  /** Tasks that will not run. */
  canceled(run: Run, from: number, count: number): void;
  addAgent(offer: AgentOffer): void;
  removeAgent(id: number): void;
  pause(id: number, paused: boolean): void;
  /** When its pilot ends, as the agent itself says. */
  setEnd(id: number, endsAt: number): void;
  /** Whether tasks may be handed to it ahead: it says so itself. */
  setAhead(id: number, ahead: boolean): void;
  /** A task that an agent already has, found in the state after a restart. */
  restore(run: Run, row: Row, agent: AgentId): void;
  /** A task that was handed ahead waits for nothing more: the agent has it like any other. */
  arrived(run: Run, row: Row, agent: AgentId): void;
  /** Counted no later than anything is asked of the scheduler that depends on it. */
  left(run: Run, row: Row, agent: AgentId): void;
  /** Agents hold slots for the ranks of a task, found in the state after a restart. */
  restoreGang(shape: Shape, placement: RankPlacement): void;
  leftGang(shape: Shape, placement: RankPlacement): void;
  /** Places what can be placed now. The caller applies the assignments to the state before the next pass. */
  pass(now: number): Assignment[];
  /** Where free slots could take tasks that wait at other agents, when nothing waits here. */
  rebalance(now: number): Rebalance;
  /**
   * Waiting tasks by shape, and what the next of them are expected to take. Those that wait together are told apart
   * where one of these nodes has room for some and not for others.
   */
  demand(nodes?: readonly Resources[]): WaitingShape[];
  waiting(): number;
  /** Whether it waits for the first tasks of its group. */
  isHeld(run: Run, row: Row): boolean;
  /** How many tasks stand before this one. */
  before(run: Run, row: Row): number;
  /** The pressure of a group of a run that is not over, and when its tasks should begin: the run's end less that. */
  rankOf(run: Run, group: Group): Rank;
  /** What is free of what all agents of a cluster share, by name. */
  sharedIn(cluster: string): Resources;
  /** Some of what waits has not been looked at yet: another pass is due soon. */
  isUnfolding(): boolean;
  /** Takes everything that waits with a wanted shape out of the queues, for a caller that will not place it. */
  withdraw(isWanted: (shape: Shape) => boolean): RowRanges[];
  /** Tasks that an agent has, and how many of them wait there for a slot. */
  loadOf(agent: AgentId): { count: number; backlog: number } | undefined;
  /** What the tasks that have slots there leave of what it offers. */
  freeOf(agent: AgentId): Resources | undefined;
  /**
   * The share of an agent's slots that tasks have, backlog included, and the seconds until all of it is done when
   * spread over all its slots; `unknown` is the estimate for a task about which nothing is known.
   */
  occupancyOf(agent: AgentId, unknown: number): { used: number; seconds: number };
}

/** What to expect of tasks about which nothing is known. */
const UNKNOWN_MS = 60_000;

const expectedOrUnknown = (run: Run, group: Group): number => {
  const ms = expectedMs(run, group);
  return ms < 0 ? UNKNOWN_MS : ms;
};

const cpusOf = ({ resources }: AgentOffer): number => amountOf(resources, "cpus");

/** How many tasks an expectation is based on. */
const SAMPLED = 100;

/** How many rows with shapes of their own one pass puts in order. */
const UNFOLDED = 5000;

/** Visits rows of a run, group by group: in a graph many are alone. */
const forEachPart = (
  run: Run,
  from: number,
  count: number,
  visit: (group: Group, row: Row, end: Row) => void,
): void => {
  for (let row = from; row < from + count;) {
    const group = groupOf(run.groups, row);
    const end = Math.min(from + count, group.first + group.count);
    visit(group, row, end);
    row = end;
  }
};

/** The groups of rows. Tasks end in order, and the next one is often of the same group. */
const createGroupFinder = (): ((run: Run, row: Row) => Group) => {
  let of: Run | undefined;
  let last: Group | undefined;
  return (run, row) => {
    if (last !== undefined && of === run && row >= last.first && row < last.first + last.count) return last;
    of = run;
    return (last = groupOf(run.groups, row));
  };
};

/** What has happened since the last pass. */
interface Since {
  /** Something new waits: any agent may have room for it. */
  fresh: boolean;
  /** Tasks that left agents. */
  ended: number;
  /** Tasks that were handed ahead and may begin. */
  arrived: Head[];
}

/**
 * Tasks that have left an agent. Results come many at a time from one agent, of tasks that asked for the same: such tasks are
 * taken from it together, before anybody looks.
 */
const createLeaving = (pool: AgentPool, since: Since) => {
  let from: AgentId = 0;
  let shape: Shape | undefined;
  let count = 0;

  const settle = (): void => {
    if (count === 0 || shape === undefined) return;
    const left = count;
    count = 0;
    const agent = pool.agents.get(from);
    // they ran in jobs of their own
    if (agent === undefined) return void (since.ended += left);
    // when a gang is over, all its agents release what they hold for it
    if (shape.ranks !== undefined) return;
    const placed = agent.placed.size === 0 ? undefined : knownOf(agent, shape);
    let taken = 0;
    while (placed !== undefined && taken < left && placed.count > 0) {
      // where others wait there for a slot, one goes after the other: what each leaves free tells which of them is next
      const together = agent.backlog === placed.count - placed.slotted ? Math.min(left - taken, placed.count) : 1;
      pool.take(agent, placed, together);
      taken += together;
    }
    if (shape.own) while (taken < left && pool.takeOwn(agent, shape)) taken += 1;
    since.ended += taken;
  };

  return {
    add: (agent: AgentId, of: Shape): void => {
      if (of !== shape || agent !== from) {
        settle();
        from = agent;
        shape = of;
      }
      count += 1;
    },
    settle,
  };
};

interface PassParts extends Omit<Around, "now" | "waiting"> {
  readonly forAgents: Store;
  readonly asJobs: Store;
}

const createPass = (parts: PassParts, since: Since): ((now: number) => Assignment[]) => {
  const { forAgents, asJobs, pool, order, prefetch } = parts;
  const { waiting, unfolding } = forAgents;
  const kept = createKept(pool);

  /** Places what waits, and returns what others may be handed ahead behind. */
  const place = (now: number, out: Map<number, Assignment>): { gangs: Assignment[]; heads: PlacedRows[] } => {
    const heads: PlacedRows[] = [];
    const gangs: Assignment[] = [];
    unfolding.unfold(UNFOLDED);
    asJobs.unfolding.unfold(UNFOLDED);
    const renewed = order.renew(since.ended);
    waiting.rank(renewed);
    asJobs.waiting.rank(renewed);
    since.ended = 0;
    const awake = pool.candidates(since.fresh).filter((agent) => !agent.paused);
    // what is unfolded later will be new to every agent
    since.fresh = unfolding.rows > 0;
    const active = [...awake.filter(({ count }) => count > 0), ...awake.filter(({ count }) => count === 0)];
    const first = active.length === 0 ? undefined : waiting.first();
    const shape = first === undefined ? undefined : shapeOfRow(first.batch.group, first.row);
    kept.review(shape);
    if (first === undefined || shape === undefined) return { gangs, heads };
    const { many } = waiting;
    const current: Pass = { pool, waiting, kept, prefetch, now, out, gangs, heads };
    fillSlots(current, active);
    const next = waiting.first();
    if (next?.batch !== first.batch || next.row !== first.row) kept.letGo();
    else if (many) kept.keep(shape, now);
    fillBacklogs(current, active);
    return { gangs, heads };
  };

  return (now) => {
    const out = new Map<number, Assignment>();
    const { gangs, heads } = place(now, out);
    handAhead({ pool, waiting, order, prefetch, now }, out, heads, since.arrived);
    since.arrived = [];
    return [...out.values(), ...gangs];
  };
};

/** `defaultCluster` is for tasks that name no cluster; without it they go anywhere. */
export const createScheduler = (
  prefetch: PrefetchPolicy = DEFAULT_PREFETCH,
  defaultCluster: string | undefined = undefined,
  /** What several agents share. */
  shared: readonly AccountRule[] = [],
  /** What goes first among equal priorities. */
  order: Order = createPressureOrder(expectedOrUnknown),
): Scheduler => {
  const forAgents = createStore(order);
  const { waiting, unfolding } = forAgents;
  /** Tasks that are jobs of their own wait apart: no agent of the pool gets them. */
  const asJobs = createStore(order);
  const storeOf = ({ spec }: Group): Store => (spec.job === undefined ? forAgents : asJobs);
  const pool = createAgentPool(defaultCluster, createAccounts(shared));
  const since: Since = { fresh: false, ended: 0, arrived: [] };
  const pass = createPass({ forAgents, asJobs, pool, order, prefetch }, since);
  const findGroup = createGroupFinder();
  const leaving = createLeaving(pool, since);
  const rebalancing = createRebalancing(pool);
  const settled = (): AgentPool => {
    leaving.settle();
    return pool;
  };

  const restore = (run: Run, row: Row, id: AgentId): AgentLoad | undefined => {
    const agent = settled().agents.get(id);
    const group = groupOf(run.groups, row);
    const shape = shapeOfRow(group, row);
    if (agent === undefined || shape.ranks !== undefined) return agent;
    rebalancing.given();
    if (shape.own && pool.roomForOwn(agent, shape) > 0) pool.giveOwn(agent, shape, 1, expectedMs(run, group));
    else pool.give(agent, placedOf(agent, shape), 1);
    return agent;
  };

  const unqueue = (run: Run): void => {
    forAgents.dropRun(run);
    asJobs.dropRun(run);
  };

  return {
    jobs: createJobQueue(asJobs.waiting, waiting, order),
    reservations: createReservations(settled),
    ready: (run, from, count) => {
      since.fresh = true;
      forEachPart(run, from, count, (group, row, end) => storeOf(group).ready(run, group, row, end));
    },
    dropRun: (run) => {
      unqueue(run);
      order.forget(run);
    },
    unqueue,
    expectationChanged: order.changed,
    canceled: (run, from, count) => {
      forEachPart(run, from, count, (group) => order.changed(run, group));
    },
    addAgent: (offer) => {
      const known = settled().agents.get(offer.id);
      order.resized(cpusOf(offer) - (known === undefined ? 0 : cpusOf(known.offer)));
      pool.join(offer);
    },
    removeAgent: (id) => {
      const agent = settled().agents.get(id);
      if (agent !== undefined) order.resized(-cpusOf(agent.offer));
      pool.leave(id);
    },
    pause: (id, paused) => settled().pause(id, paused),
    setEnd: pool.setEnd,
    setAhead: pool.setAhead,
    restore: (run, row, id) => void restore(run, row, id),
    arrived: (run, row, id) => {
      const agent = restore(run, row, id);
      if (agent !== undefined) since.arrived.push({ run, row, agent });
    },
    left: (run, row, id) => leaving.add(id, shapeOfRow(findGroup(run, row), row)),
    restoreGang: (shape, placement) => settled().giveRanks(shape, placement),
    leftGang: (shape, placement) => settled().takeRanks(shape, placement),
    pass: (now) => {
      leaving.settle();
      const placed = pass(now);
      if (placed.length > 0) rebalancing.given();
      return placed;
    },
    rebalance: (now) => {
      leaving.settle();
      return forAgents.total > 0 ? NOTHING_TO_ASK : rebalancing.look(now);
    },
    demand: (nodes = []) => waiting.demand(nodes, SAMPLED),
    waiting: () => forAgents.total + asJobs.total,
    isHeld: () => false,
    before: (run, row) => storeOf(groupOf(run.groups, row)).waiting.before(groupOf(run.groups, row), row),
    rankOf: order.rankOf,
    sharedIn: (cluster) => settled().accounts.freeIn(cluster),
    isUnfolding: () => unfolding.rows + asJobs.unfolding.rows > 0,
    withdraw: (isWanted) => {
      unfolding.unfold(Infinity);
      return waiting.withdraw(isWanted);
    },
    loadOf: (id) => {
      const agent = settled().agents.get(id);
      return agent === undefined ? undefined : { count: agent.count, backlog: agent.backlog };
    },
    freeOf: (id) => settled().agents.get(id)?.free,
    occupancyOf: (id, unknown) => occupancyOf(settled().agents.get(id), unknown),
  };
};
