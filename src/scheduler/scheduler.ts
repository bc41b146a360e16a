import type { RowRanges } from "../core/events.ts";
import { type Group, type Run, type Shape, expectedMs, groupOf, shapeOfRow } from "../core/run.ts";
import {
  type AgentLoad,
  type AgentOffer,
  type Placed,
  add,
  createLoad,
  placedOf,
  release,
  room,
} from "./agent-load.ts";
import { type Bounds, boundsOf } from "./bounds.ts";
import { DEFAULT_PREFETCH, type PrefetchPolicy, prefetchLoad } from "./capacity.ts";
import { type RankPlacement, placeRanks } from "./gangs.ts";
import { keepFor, mayPass } from "./keeping.ts";
import { NOTHING_TO_ASK, type Rebalance, takeBacks } from "./take-back.ts";
import {
  type Sample,
  type ShapeQueue,
  createShapeQueue,
  dropRun,
  headOf,
  pushRange,
  sampleOf,
  takeRows,
} from "./queues.ts";

/**
 * Which agent gets which tasks. The scheduler holds nothing that the state does not: it is rebuilt after a restart.
 *
 * Each agent's tasks are of two kinds, counted per shape: slotted ones fit into its resources together, the others
 * wait there for a slot (its backlog, the prefetch), so that a free slot never waits for a round trip. First every
 * agent's slots are filled, those of agents that have tasks already before those of idle ones, so that pilots which
 * are not needed empty; then the backlogs, each agent up to its share of all that is not begun, here or at agents: who
 * has its share already leaves the rest to the others, so that a few large assignments do, and not many small ones.
 */

export type { AgentOffer } from "./agent-load.ts";
export type { Rebalance, TakeBack } from "./take-back.ts";

export interface Assignment {
  readonly agent: number;
  readonly parts: RowRanges[];
  /** One task whose ranks several agents run together. */
  readonly gang?: RankPlacement;
}

export interface Scheduler {
  ready(run: Run, from: number, count: number): void;
  dropRun(run: Run): void;
  addAgent(offer: AgentOffer): void;
  removeAgent(id: number): void;
  pause(id: number, paused: boolean): void;
  /** When its pilot ends, as it says itself. */
  setEnd(id: number, endsAt: number): void;
  /** A task that an agent has already, found in the state after a restart. */
  restore(run: Run, row: number, agent: number): void;
  left(run: Run, row: number, agent: number): void;
  /** Agents hold slots for the ranks of a task, found in the state after a restart. */
  restoreGang(shape: Shape, placement: RankPlacement): void;
  leftGang(shape: Shape, placement: RankPlacement): void;
  /** Places what can be placed now. The caller applies the assignments to the state before the next pass. */
  pass(now: number): Assignment[];
  /** Where free slots could take what waits at other agents, when nothing waits here. */
  rebalance(now: number): Rebalance;
  /** Waiting tasks by shape, and what the next of them are expected to take. */
  demand(): WaitingShape[];
  waiting(): number;
  /** Takes all that waits in these shapes (by key) out of the queues, for those who will not place it. */
  withdraw(keys: ReadonlySet<string>): RowRanges[];
  /** Tasks that an agent has, and how many of them wait there for a slot. */
  loadOf(agent: number): { count: number; backlog: number } | undefined;
  /**
   * The share of an agent's slots that tasks have, its backlog included, and the seconds until all of it is done when
   * spread over all its slots; `unknown` is what a task counts of which nothing is known.
   */
  occupancyOf(agent: number, unknown: number): { used: number; seconds: number };
}

export interface WaitingShape {
  readonly shape: Shape;
  readonly waiting: number;
  readonly sample: Sample;
}

/** Tasks that an expectation is made of. */
const SAMPLED = 100;

const EPSILON = 1e-9;

/** `defaultCluster` is that of tasks which name none; without it they go anywhere. */
export const createScheduler = (
  prefetch: PrefetchPolicy = DEFAULT_PREFETCH,
  defaultCluster: string | undefined = undefined,
): Scheduler => {
  const queues = new Map<string, ShapeQueue>();
  const agents = new Map<number, AgentLoad>();
  /** Agents that may have room, and whether something new waits (then all may). */
  const roomy = new Set<AgentLoad>();
  let fresh = false;
  let seq = 0;
  /** The first task in order, when it fits nowhere yet, and agents that take nothing behind it until it does. */
  let kept: { readonly key: string; readonly agents: ReadonlySet<AgentLoad> } | undefined;

  /** Of what waits in this pass. */
  let bounds: Bounds = boundsOf([], prefetch);
  /** Agents with tasks that wait there for a slot, and how many those are together. */
  const backlogged = new Set<AgentLoad>();
  let backlog = 0;

  const queueOf = (shape: Shape): ShapeQueue => {
    let queue = queues.get(shape.key);
    if (queue === undefined) {
      queue = createShapeQueue(shape);
      queues.set(shape.key, queue);
    }
    return queue;
  };

  const pushGroup = (run: Run, group: Group, from: number, count: number): void => {
    seq += 1;
    if (group.rowShapes === undefined) {
      pushRange(queueOf(group.shape), run, group, from, count, seq);
      return;
    }
    for (let row = from; row < from + count; row += 1)
      pushRange(queueOf(shapeOfRow(group, row)), run, group, row, 1, seq);
  };

  const belongs = (agent: AgentLoad, shape: Shape): boolean =>
    (shape.cluster ?? defaultCluster ?? agent.offer.cluster) === agent.offer.cluster &&
    (shape.queue === undefined || shape.queue === agent.offer.queue);

  const canServe = (agent: AgentLoad, shape: Shape, now: number): boolean =>
    belongs(agent, shape) && (shape.timeRequest === 0 || agent.endsAt - now >= shape.timeRequest * 1000);

  /** Gives an agent tasks, or takes some away, and keeps in mind who has a backlog and who has room. */
  const give = (agent: AgentLoad, placed: Placed, count: number): void => {
    backlog -= agent.backlog;
    add(agent, placed, count);
    backlog += agent.backlog;
    if (agent.backlog > 0) backlogged.add(agent);
  };

  const take = (agent: AgentLoad, placed: Placed, count: number): void => {
    backlog -= agent.backlog;
    release(agent, placed, count);
    backlog += agent.backlog;
    if (agent.backlog === 0) backlogged.delete(agent);
    roomy.add(agent);
  };

  const record = (out: Map<number, Assignment>, agent: number, run: number, from: number, count: number): void => {
    let assignment = out.get(agent);
    if (assignment === undefined) {
      assignment = { agent, parts: [] };
      out.set(agent, assignment);
    }
    const last = assignment.parts.at(-1);
    if (last?.run === run) {
      const ranges = last.ranges as number[];
      if (ranges.at(-2)! + ranges.at(-1)! === from) ranges[ranges.length - 1]! += count;
      else ranges.push(from, count);
    } else assignment.parts.push({ run, ranges: [from, count] });
  };

  /** Fills one agent's slots, or its backlog with at most `share` tasks. */
  const fill = (
    agent: AgentLoad,
    order: readonly ShapeQueue[],
    share: number | undefined,
    now: number,
    out: Map<number, Assignment>,
  ): void => {
    const full = (): boolean =>
      share === undefined ? !bounds.fits(agent.free) : !bounds.takes(agent.offer.resources, agent.backlogLoad);
    if (full()) return;
    let budget = share ?? Infinity;
    for (const queue of order) {
      if (queue.waiting === 0 || !canServe(agent, queue.shape, now)) continue;
      const placed = placedOf(agent, queue.shape);
      if (placed.most === 0) continue;
      const had = agent.count;
      while (budget > 0) {
        const head = headOf(queue);
        if (head === undefined) break;
        const expected = expectedMs(head.run, head.group);
        const most =
          share === undefined
            ? room(agent, placed)
            : (prefetchLoad(prefetch, expected, placed.most) - agent.backlogLoad) * placed.most;
        const count = Math.min(budget, Math.floor(most + EPSILON));
        if (count <= 0) break;
        const taken = takeRows(queue, count);
        if (taken === undefined) break;
        placed.expectedMs = expected;
        agent.givenAt = now;
        give(agent, placed, taken.count);
        budget -= taken.count;
        record(out, agent.offer.id, taken.run.id, taken.from, taken.count);
      }
      if (budget <= 0 || (agent.count > had && full())) return;
    }
  };

  /** Agents that could ever serve a shape, by pilot. */
  const byPilot = (shape: Shape, now: number): Map<number, AgentLoad[]> => {
    const pilots = new Map<number, AgentLoad[]>();
    for (const agent of agents.values()) {
      if (agent.paused || !canServe(agent, shape, now) || placedOf(agent, shape).most === 0) continue;
      const members = pilots.get(agent.offer.pilot);
      if (members === undefined) pilots.set(agent.offer.pilot, [agent]);
      else members.push(agent);
    }
    return pilots;
  };

  const hold = (shape: Shape, { agents: ids, ranks }: RankPlacement): void => {
    for (const [i, id] of ids.entries()) {
      const agent = agents.get(id);
      if (agent !== undefined) give(agent, placedOf(agent, shape), ranks[i]!);
    }
  };

  /** Places tasks whose ranks run together, each on the agents of one pilot. */
  const placeGangs = (queue: ShapeQueue, now: number, out: Assignment[]): void => {
    const { shape } = queue;
    for (const [, members] of byPilot(shape, now)) {
      while (headOf(queue) !== undefined) {
        const rooms = members.map((agent) => ({
          agent: agent.offer.id,
          host: agent.offer.host,
          room: agent.backlog > 0 ? 0 : room(agent, placedOf(agent, shape)),
        }));
        const gang = placeRanks(shape.ranks!, rooms);
        if (gang === undefined) break;
        const taken = takeRows(queue, 1);
        if (taken === undefined) break;
        hold(shape, gang);
        out.push({ agent: gang.agents[0]!, parts: [{ run: taken.run.id, ranges: [taken.from, 1] }], gang });
      }
    }
  };

  /** Gives up what was kept when it is no longer needed, and says so to those that were kept. */
  const reviewKept = (order: readonly ShapeQueue[]): void => {
    if (kept === undefined) return;
    const whole = [...kept.agents].every((agent) => agents.get(agent.offer.id) === agent && !agent.paused);
    if (!whole || order[0]?.shape.key !== kept.key) letGo();
  };

  const letGo = (): void => {
    for (const agent of kept?.agents ?? []) if (agents.get(agent.offer.id) === agent) roomy.add(agent);
    kept = undefined;
  };

  /** What an agent may take: all of it, unless it is kept for the first in order. */
  const openTo = (agent: AgentLoad, part: readonly ShapeQueue[], first: ShapeQueue): readonly ShapeQueue[] =>
    kept?.agents.has(agent) === true
      ? part.filter((queue) => queue === first || mayPass(agent, first.shape, queue.shape))
      : part;

  /** Fills slots: queues in order, gangs where they stand in it; kept agents take only what they are kept for. */
  const fillSlots = (
    active: readonly AgentLoad[],
    order: readonly ShapeQueue[],
    now: number,
    out: Map<number, Assignment>,
    gangs: Assignment[],
  ): void => {
    for (let from = 0; from < order.length;) {
      if (order[from]!.shape.ranks !== undefined) {
        placeGangs(order[from]!, now, gangs);
        from += 1;
        continue;
      }
      let end = from + 1;
      while (end < order.length && order[end]!.shape.ranks === undefined) end += 1;
      const part = from === 0 && end === order.length ? order : order.slice(from, end);
      for (const agent of active) {
        fill(agent, openTo(agent, part, order[0]!), undefined, now, out);
      }
      from = end;
    }
  };

  const inOrder = (): ShapeQueue[] => {
    const heads: { queue: ShapeQueue; priority: number; seq: number }[] = [];
    for (const [key, queue] of queues) {
      const head = headOf(queue);
      if (head === undefined) queues.delete(key);
      else heads.push({ queue, priority: head.priority, seq: head.seq });
    }
    heads.sort((a, b) => b.priority - a.priority || a.seq - b.seq);
    return heads.map(({ queue }) => queue);
  };

  return {
    ready: (run, from, count) => {
      fresh = true;
      for (let row = from, end = from + count; row < end;) {
        const group = groupOf(run.groups, row);
        const groupEnd = Math.min(end, group.first + group.count);
        pushGroup(run, group, row, groupEnd - row);
        row = groupEnd;
      }
    },
    dropRun: (run) => {
      for (const queue of queues.values()) dropRun(queue, run);
    },
    addAgent: (offer) => {
      const agent = createLoad(offer);
      agents.set(offer.id, agent);
      roomy.add(agent);
    },
    removeAgent: (id) => {
      const agent = agents.get(id);
      if (agent !== undefined) {
        roomy.delete(agent);
        backlogged.delete(agent);
        backlog -= agent.backlog;
      }
      agents.delete(id);
    },
    pause: (id, paused) => {
      const agent = agents.get(id);
      if (agent === undefined) return;
      agent.paused = paused;
      if (!paused) roomy.add(agent);
    },
    setEnd: (id, endsAt) => {
      const agent = agents.get(id);
      if (agent !== undefined) agent.endsAt = endsAt;
    },
    restore: (run, row, id) => {
      const agent = agents.get(id);
      const shape = shapeOfRow(groupOf(run.groups, row), row);
      if (agent !== undefined && shape.ranks === undefined) give(agent, placedOf(agent, shape), 1);
    },
    restoreGang: hold,
    leftGang: (shape, { agents: ids, ranks }) => {
      for (const [i, id] of ids.entries()) {
        const agent = agents.get(id);
        const placed = agent?.placed.get(shape.key);
        if (agent !== undefined && placed !== undefined) take(agent, placed, ranks[i]!);
      }
    },
    left: (run, row, id) => {
      const agent = agents.get(id);
      if (agent === undefined) return;
      const shape = shapeOfRow(groupOf(run.groups, row), row);
      // what a gang holds is given back when it is over, by all of its agents
      if (shape.ranks !== undefined) return;
      const placed = agent.placed.get(shape.key);
      if (placed === undefined || placed.count === 0) return;
      take(agent, placed, 1);
    },
    pass: (now) => {
      const candidates = fresh ? [...agents.values()] : [...roomy];
      fresh = false;
      roomy.clear();
      const awake = candidates.filter((agent) => !agent.paused);
      const active = [...awake.filter(({ count }) => count > 0), ...awake.filter(({ count }) => count === 0)];
      const order = active.length === 0 ? [] : inOrder();
      reviewKept(order);
      if (order.length === 0) return [];
      bounds = boundsOf(order, prefetch);
      const out = new Map<number, Assignment>();
      const gangs: Assignment[] = [];
      const [first] = order as [ShapeQueue];
      const waited = first.waiting;
      fillSlots(active, order, now, out, gangs);
      if (first.waiting < waited) letGo();
      else if (order.length > 1 && kept === undefined) {
        const chosen = keepFor(first.shape, byPilot(first.shape, now).values());
        if (chosen.size > 0) kept = { key: first.shape.key, agents: chosen };
      }
      const single = order.filter((queue) => queue.shape.ranks === undefined);
      const left = single.reduce((sum, queue) => sum + queue.waiting, 0);
      if (left > 0) {
        const share = Math.ceil((left + backlog) / Math.max(1, agents.size));
        for (const agent of active)
          if (agent.backlog < share) fill(agent, openTo(agent, single, first), share - agent.backlog, now, out);
      }
      return [...out.values(), ...gangs];
    },
    rebalance: (now) => {
      if (backlogged.size === 0) return NOTHING_TO_ASK;
      for (const queue of queues.values()) if (queue.waiting > 0) return NOTHING_TO_ASK;
      return takeBacks(backlogged, agents.values(), belongs, now);
    },
    demand: () =>
      [...queues.values()]
        .filter((queue) => queue.waiting > 0)
        .map((queue) => ({ shape: queue.shape, waiting: queue.waiting, sample: sampleOf(queue, SAMPLED) })),
    waiting: () => {
      let sum = 0;
      for (const queue of queues.values()) sum += queue.waiting;
      return sum;
    },
    withdraw: (keys) => {
      const parts = new Map<number, number[]>();
      for (const [key, queue] of queues) {
        if (!keys.has(key)) continue;
        for (let taken = takeRows(queue, Infinity); taken !== undefined; taken = takeRows(queue, Infinity)) {
          const ranges = parts.get(taken.run.id) ?? [];
          ranges.push(taken.from, taken.count);
          parts.set(taken.run.id, ranges);
        }
        queues.delete(key);
      }
      return [...parts].map(([run, ranges]) => ({ run, ranges }));
    },
    loadOf: (id) => {
      const agent = agents.get(id);
      return agent === undefined ? undefined : { count: agent.count, backlog: agent.backlog };
    },
    occupancyOf: (id, unknown) => {
      let used = 0;
      let seconds = 0;
      for (const { count, most, expectedMs: each } of agents.get(id)?.placed.values() ?? []) {
        if (count === 0) continue;
        used += count / Math.max(1, most);
        seconds += (count / Math.max(1, most)) * (each < 0 ? unknown : each / 1000);
      }
      return { used, seconds };
    },
  };
};
