import type { RowRanges } from "../core/events.ts";
import type { Resources } from "../core/resources.ts";
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
import { DEFAULT_PREFETCH, type PrefetchPolicy, prefetchLoad } from "./capacity.ts";
import { type RankPlacement, placeRanks } from "./gangs.ts";
import { type Room, NOTHING_BARRED } from "./fit-list.ts";
import { barredFor, keepFor } from "./keeping.ts";
import { NOTHING_TO_ASK, type Rebalance, takeBacks } from "./take-back.ts";
import { type Place, type Sample, type WaitingRange, createWaiting, visitFitting } from "./waiting.ts";

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
  /** Some of what waits is not yet looked at: another pass is due soon. */
  isUnfolding(): boolean;
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

/** Good until the next pass. */
export interface WaitingShape {
  readonly shape: Shape;
  readonly waiting: number;
  readonly sample: Readonly<Sample>;
}

/** Tasks that an expectation is made of. */
const SAMPLED = 100;

/** How many entries that give an agent nothing are looked at before its backlog, or its slots, count as full. */
const BACKLOG_MISSES = 16;
const SLOT_MISSES = 1024;
/** And how many shapes of tasks with ranks find no room before the rest of them wait for the next pass. */
const GANG_MISSES = 64;

/** Rows with shapes of their own that are put in order in one pass. */
const UNFOLDED = 5000;

const EPSILON = 1e-9;

/** `defaultCluster` is that of tasks which name none; without it they go anywhere. */
export const createScheduler = (
  prefetch: PrefetchPolicy = DEFAULT_PREFETCH,
  defaultCluster: string | undefined = undefined,
): Scheduler => {
  const waiting = createWaiting();
  const agents = new Map<number, AgentLoad>();
  /** Agents that may have room, and whether something new waits (then all may). */
  const roomy = new Set<AgentLoad>();
  let fresh = false;
  /** The first task in order, when it fits nowhere yet, and agents that take nothing behind it until it does. */
  let kept: { readonly shape: Shape; readonly agents: ReadonlySet<AgentLoad> } | undefined;
  /** Agents with tasks that wait there for a slot, and how many those are together. */
  const backlogged = new Set<AgentLoad>();
  let backlog = 0;

  /** Rows with shapes of their own, which are put in order some at a time: a million at once would hold up everybody. */
  let folded: { readonly run: Run; readonly group: Group; from: number; readonly end: number }[] = [];
  let foldedRows = 0;

  const pushGroup = (run: Run, group: Group, from: number, count: number): void => {
    if (group.rowShapes === undefined) return waiting.push(run, group, group.shape, from, count);
    folded.push({ run, group, from, end: from + count });
    foldedRows += count;
  };

  const unfold = (most: number): void => {
    let left = most;
    while (left > 0 && folded.length > 0) {
      const part = folded[0]!;
      const end = Math.min(part.end, part.from + left);
      left -= end - part.from;
      foldedRows -= end - part.from;
      for (; part.from < end; part.from += 1)
        waiting.push(part.run, part.group, shapeOfRow(part.group, part.from), part.from, 1);
      if (part.from === part.end) folded.shift();
    }
  };

  const belongs = (agent: AgentLoad, { cluster, queue }: Pick<Shape, "cluster" | "queue">): boolean =>
    (cluster ?? defaultCluster ?? agent.offer.cluster) === agent.offer.cluster &&
    (queue === undefined || queue === agent.offer.queue);

  /** Where an agent finds tasks without ranks. */
  const placesFor = (agent: AgentLoad): Place[] => {
    const found: Place[] = [];
    for (const place of waiting.places()) if (!place.gangs && belongs(agent, place)) found.push(place);
    return found;
  };

  const secondsLeft = (agent: AgentLoad, now: number): number => (agent.endsAt - now) / 1000;

  const canServe = (agent: AgentLoad, shape: Shape, now: number): boolean =>
    belongs(agent, shape) && (shape.timeRequest === 0 || secondsLeft(agent, now) >= shape.timeRequest);

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

  /** What others may not use of an agent, because it is kept. */
  const barredAt = (agent: AgentLoad): ReadonlySet<string> =>
    kept?.agents.has(agent) === true ? barredFor(agent, kept.shape) : NOTHING_BARRED;

  /** Time that is left counts only for tasks that ask for some. */
  const roomIn = (agent: AgentLoad, free: Resources, now: number): Room => ({
    free,
    seconds: Math.max(0, secondsLeft(agent, now)),
    barred: barredAt(agent),
  });

  const handOut = (
    agent: AgentLoad,
    placed: Placed,
    range: WaitingRange,
    most: number,
    now: number,
    out: Map<number, Assignment>,
  ): number => {
    const taken = waiting.take(range, most);
    if (taken === undefined) return 0;
    placed.expectedMs = expectedMs(range.run, range.group);
    agent.givenAt = now;
    give(agent, placed, taken.count);
    record(out, agent.offer.id, range.run.id, taken.from, taken.count);
    return taken.count;
  };

  /** Fills one agent's slots with what stands before `end` in order. */
  const fillAgent = (
    agent: AgentLoad,
    end: WaitingRange | undefined,
    now: number,
    out: Map<number, Assignment>,
  ): void => {
    let misses = SLOT_MISSES;
    visitFitting(placesFor(agent), roomIn(agent, agent.free, now), end, (range) => {
      const placed = placedOf(agent, range.shape);
      const most = room(agent, placed);
      if (most <= 0) return (misses -= 1) > 0;
      let left = most;
      // rows that wait no longer may stand between those that do
      while (left > 0 && range.from < range.end) left -= handOut(agent, placed, range, left, now, out);
      return true;
    });
  };

  /** Fills one agent's backlog with at most `share` tasks. */
  const fillBacklog = (agent: AgentLoad, share: number, now: number, out: Map<number, Assignment>): void => {
    let misses = BACKLOG_MISSES;
    let budget = share;
    // what is behind in order passes nothing of its own shape
    const passed = new Set<string>();
    visitFitting(placesFor(agent), roomIn(agent, agent.offer.resources, now), undefined, (range) => {
      if (passed.has(range.shape.key)) return (misses -= 1) > 0;
      const placed = placedOf(agent, range.shape);
      while (budget > 0 && range.from < range.end) {
        const load = prefetchLoad(prefetch, expectedMs(range.run, range.group), placed.most) - agent.backlogLoad;
        const most = Math.min(budget, Math.floor(load * placed.most + EPSILON));
        if (most <= 0) {
          passed.add(range.shape.key);
          return (misses -= 1) > 0;
        }
        budget -= handOut(agent, placed, range, most, now, out);
      }
      return budget > 0;
    });
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

  /** Places tasks whose ranks run together, each on the agents of one pilot; false if there was room for none. */
  const placeGangs = (range: WaitingRange, now: number, out: Assignment[]): boolean => {
    const { shape, run } = range;
    let any = false;
    for (const [, members] of byPilot(shape, now)) {
      while (range.from < range.end) {
        const rooms = members.map((agent) => ({
          agent: agent.offer.id,
          host: agent.offer.host,
          room: agent.backlog > 0 ? 0 : room(agent, placedOf(agent, shape)),
        }));
        const gang = placeRanks(shape.ranks!, rooms);
        if (gang === undefined) break;
        const taken = waiting.take(range, 1);
        if (taken === undefined) continue;
        any = true;
        hold(shape, gang);
        out.push({ agent: gang.agents[0]!, parts: [{ run: run.id, ranges: [taken.from, 1] }], gang });
      }
    }
    return any;
  };

  /** Gives up what was kept when it is no longer needed, and says so to those that were kept. */
  const reviewKept = (first: WaitingRange | undefined): void => {
    if (kept === undefined) return;
    const whole = [...kept.agents].every((agent) => agents.get(agent.offer.id) === agent && !agent.paused);
    if (!whole || first?.shape.key !== kept.shape.key) letGo();
  };

  const letGo = (): void => {
    for (const agent of kept?.agents ?? []) if (agents.get(agent.offer.id) === agent) roomy.add(agent);
    kept = undefined;
  };

  /** More than any agent has free: what does not fit into it fits nowhere. */
  const widest = (): Room => {
    const free: Record<string, number> = {};
    for (const agent of agents.values())
      for (const name in agent.free) free[name] = Math.max(free[name] ?? 0, agent.free[name]!);
    return { free, seconds: Infinity, barred: NOTHING_BARRED };
  };

  /** Fills slots in order, with tasks of ranks where they stand in it; kept agents take only what they are kept for. */
  const fillSlots = (
    active: readonly AgentLoad[],
    now: number,
    out: Map<number, Assignment>,
    gangs: Assignment[],
  ): void => {
    const places = [...waiting.places()].filter((place) => place.gangs);
    if (places.length > 0) {
      const refused = new Set<string>();
      visitFitting(places, widest(), undefined, (range) => {
        if (refused.has(range.shape.key)) return true;
        for (const agent of active) fillAgent(agent, range, now, out);
        if (!placeGangs(range, now, gangs)) refused.add(range.shape.key);
        return refused.size < GANG_MISSES;
      });
    }
    for (const agent of active) fillAgent(agent, undefined, now, out);
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
      if (folded.some((part) => part.run === run)) {
        folded = folded.filter((part) => part.run !== run);
        foldedRows = folded.reduce((sum, { from, end }) => sum + end - from, 0);
      }
      waiting.dropRun(run);
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
      unfold(UNFOLDED);
      const candidates = fresh ? [...agents.values()] : [...roomy];
      // what is unfolded later is new to all of them
      fresh = foldedRows > 0;
      roomy.clear();
      const awake = candidates.filter((agent) => !agent.paused);
      const active = [...awake.filter(({ count }) => count > 0), ...awake.filter(({ count }) => count === 0)];
      const first = active.length === 0 ? undefined : waiting.first();
      reviewKept(first);
      if (first === undefined) return [];
      const out = new Map<number, Assignment>();
      const gangs: Assignment[] = [];
      const { count: counted } = first;
      const waited = counted.waiting;
      const many = waiting.shapes.size > 1;
      fillSlots(active, now, out, gangs);
      if (counted.waiting < waited) letGo();
      else if (many && kept === undefined) {
        const chosen = keepFor(first.shape, byPilot(first.shape, now).values());
        if (chosen.size > 0) kept = { shape: first.shape, agents: chosen };
      }
      if (waiting.singles > 0) {
        const share = Math.ceil((waiting.singles + backlog) / Math.max(1, agents.size));
        for (const agent of active) if (agent.backlog < share) fillBacklog(agent, share - agent.backlog, now, out);
      }
      return [...out.values(), ...gangs];
    },
    rebalance: (now) =>
      backlogged.size === 0 || waiting.total + foldedRows > 0
        ? NOTHING_TO_ASK
        : takeBacks(backlogged, agents.values(), belongs, now),
    demand: () => {
      waiting.sample(SAMPLED);
      return [...waiting.shapes.values()];
    },
    waiting: () => waiting.total + foldedRows,
    isUnfolding: () => foldedRows > 0,
    withdraw: (keys) => {
      unfold(Infinity);
      const parts = new Map<number, number[]>();
      for (const range of Array.from(waiting).filter(({ shape }) => keys.has(shape.key))) {
        while (range.from < range.end) {
          const taken = waiting.take(range, Infinity);
          if (taken === undefined) continue;
          const ranges = parts.get(range.run.id) ?? [];
          ranges.push(taken.from, taken.count);
          parts.set(range.run.id, ranges);
        }
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
