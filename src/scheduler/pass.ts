import { type Shape, expectedMs } from "../core/run.ts";
import type { RowRanges } from "../core/events.ts";
import type { Resources } from "../core/resources.ts";
import { type AgentLoad, type Placed, placedOf } from "./agent-load.ts";
import { type AgentPool, secondsLeft } from "./agent-pool.ts";
import { type PrefetchPolicy, prefetchLoad } from "./capacity.ts";
import type { Room } from "./fit-list.ts";
import { type RankPlacement, placeRanks } from "./gangs.ts";
import type { Kept } from "./keeping.ts";
import type { Place } from "./places.ts";
import { type Waiting, type WaitingRange, visitFitting } from "./waiting.ts";
import type { AgentId, RunId } from "../core/ids.ts";

/** One pass over what waits: fills slots in order, tasks with ranks in their turn; then the backlogs. */

export interface Assignment {
  readonly agent: AgentId;
  readonly parts: RowRanges[];
  /** One task whose ranks several agents run together. */
  readonly gang?: RankPlacement;
}

/** What a pass works with, and what it has placed so far. */
export interface Pass {
  readonly pool: AgentPool;
  readonly waiting: Waiting;
  readonly kept: Kept;
  readonly prefetch: PrefetchPolicy;
  readonly now: number;
  readonly out: Map<number, Assignment>;
  readonly gangs: Assignment[];
}

/** How many entries that give an agent nothing are tried before its backlog, or its slots, count as full. */
const BACKLOG_MISSES = 16;
const SLOT_MISSES = 1024;
/** And how many shapes of tasks with ranks may find no room before the rest wait for the next pass. */
const GANG_MISSES = 64;

const EPSILON = 1e-9;

const record = (out: Map<number, Assignment>, agent: AgentId, run: RunId, from: number, count: number): void => {
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

/** The places where an agent finds tasks without ranks. */
const placesFor = ({ pool, waiting }: Pass, agent: AgentLoad): Place[] => {
  const found: Place[] = [];
  for (const place of waiting.places()) if (!place.gangs && pool.belongs(agent, place)) found.push(place);
  return found;
};

/** Time left counts only for tasks that request some. */
const roomIn = ({ kept, now }: Pass, agent: AgentLoad, free: Resources): Room => ({
  free,
  seconds: Math.max(0, secondsLeft(agent, now)),
  barred: kept.barredAt(agent),
});

const handOut = (
  { pool, waiting, now, out }: Pass,
  agent: AgentLoad,
  placed: Placed,
  range: WaitingRange,
  most: number,
): number => {
  const taken = waiting.take(range, most);
  if (taken === undefined) return 0;
  placed.expectedMs = expectedMs(range.run, range.group);
  agent.givenAt = now;
  pool.give(agent, placed, taken.count);
  record(out, agent.offer.id, range.run.id, taken.from, taken.count);
  return taken.count;
};

/** Fills one agent's slots with what comes before `end` in order. */
const fillAgent = (pass: Pass, agent: AgentLoad, end: WaitingRange | undefined): void => {
  let misses = SLOT_MISSES;
  const view = pass.pool.accounts.view(agent);
  visitFitting(placesFor(pass, agent), roomIn(pass, agent, view.free), end, (range) => {
    const placed = placedOf(agent, range.shape);
    const most = pass.pool.roomFor(agent, range.shape);
    if (most <= 0) return (misses -= 1) > 0;
    let left = most;
    // rows that no longer wait may stand between those that do
    while (left > 0 && range.from < range.end) left -= handOut(pass, agent, placed, range, left);
    view.refresh();
    return true;
  });
};

/** Fills one agent's backlog with at most `share` tasks. */
const fillBacklog = (pass: Pass, agent: AgentLoad, share: number): void => {
  let misses = BACKLOG_MISSES;
  let budget = share;
  // later entries do not overtake earlier ones of their own shape
  const passed = new Set<string>();
  visitFitting(placesFor(pass, agent), roomIn(pass, agent, agent.offer.resources), undefined, (range) => {
    if (passed.has(range.shape.key)) return (misses -= 1) > 0;
    const placed = placedOf(agent, range.shape);
    while (budget > 0 && range.from < range.end) {
      const load = prefetchLoad(pass.prefetch, expectedMs(range.run, range.group), placed.most) - agent.backlogLoad;
      const most = Math.min(budget, Math.floor(load * placed.most + EPSILON));
      if (most <= 0 || !pass.pool.accounts.mayQueue(agent, placed)) {
        passed.add(range.shape.key);
        return (misses -= 1) > 0;
      }
      budget -= handOut(pass, agent, placed, range, most);
    }
    return budget > 0;
  });
};

const roomsFor = (pool: AgentPool, members: readonly AgentLoad[], shape: Shape) =>
  members.map((agent) => ({
    agent: agent.offer.id,
    host: agent.offer.host,
    room: agent.backlog > 0 ? 0 : pool.roomFor(agent, shape),
  }));

/** Places tasks whose ranks run together, each on the agents of one pilot; false if there was no room for any. */
const placeGangs = ({ pool, waiting, now, gangs }: Pass, range: WaitingRange): boolean => {
  const { shape, run } = range;
  let any = false;
  for (const [, members] of pool.byPilot(shape, now)) {
    while (range.from < range.end) {
      const gang = placeRanks(shape.ranks!, roomsFor(pool, members, shape));
      const chosen = gang?.agents.map((id) => pool.agents.get(id)!);
      if (gang === undefined || !pool.accounts.hasRoomFor(shape, chosen!, gang.ranks)) break;
      const taken = waiting.take(range, 1);
      if (taken === undefined) continue;
      any = true;
      pool.giveRanks(shape, gang);
      gangs.push({ agent: gang.agents[0]!, parts: [{ run: run.id, ranges: [taken.from, 1] }], gang });
    }
  }
  return any;
};

/** Fills slots in order, tasks with ranks in their turn; kept agents take only what they are kept for. */
export const fillSlots = (pass: Pass, active: readonly AgentLoad[]): void => {
  const places = [...pass.waiting.places()].filter((place) => place.gangs);
  if (places.length > 0) {
    const refused = new Set<string>();
    visitFitting(places, pass.pool.widest(), undefined, (range) => {
      if (refused.has(range.shape.key)) return true;
      for (const agent of active) fillAgent(pass, agent, range);
      if (!placeGangs(pass, range)) refused.add(range.shape.key);
      return refused.size < GANG_MISSES;
    });
  }
  for (const agent of active) fillAgent(pass, agent, undefined);
};

/** Fills the backlogs, each up to its agent's share of all tasks that have not begun. */
export const fillBacklogs = (pass: Pass, active: readonly AgentLoad[]): void => {
  const { waiting, pool } = pass;
  if (waiting.singles === 0) return;
  const share = Math.ceil((waiting.singles + pool.backlog) / Math.max(1, pool.agents.size));
  for (const agent of active) if (agent.backlog < share) fillBacklog(pass, agent, share - agent.backlog);
};
