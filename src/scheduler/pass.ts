import { type Shape, expectedMs, keyOf } from "../core/run.ts";
import type { RowRanges } from "../core/events.ts";
import type { Resources } from "../core/resources.ts";
import { type AgentLoad, type Placed, knownOf, newPlaced } from "./agent-load.ts";
import { type AgentPool, secondsLeft } from "./agent-pool.ts";
import { type Around, type Head, rowsBehind, takesNothing } from "./ahead.ts";
import type { Batch } from "./batch.ts";
import { type PrefetchPolicy, concurrency, prefetchLoad } from "./capacity.ts";
import type { Room } from "./fit-list.ts";
import { type RankPlacement, placeRanks } from "./gangs.ts";
import type { Kept } from "./keeping.ts";
import type { Place } from "./places.ts";
import { type Shelf, firstBatch } from "./shelf.ts";
import type { Tally } from "./tallies.ts";
import { type Waiting, visitFitting } from "./waiting.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/** One pass over what waits: fills slots in order, tasks with ranks in their turn; then the backlogs. */

export interface Assignment {
  readonly agent: AgentId;
  readonly parts: RowRanges[];
  /** Tasks handed ahead, none before the one it waits for. */
  readonly ahead?: RowRanges[];
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
  /** Tasks that others may be handed ahead behind. */
  readonly heads: PlacedRows[];
}

/** Rows that an agent was given together. */
export interface PlacedRows extends Head {
  readonly count: number;
}

/** How many entries that give an agent nothing are tried before its backlog, or its slots, count as full. */
const BACKLOG_MISSES = 16;
const SLOT_MISSES = 1024;
/** And how many shapes of tasks with ranks may find no room before the rest wait for the next pass. */
const GANG_MISSES = 64;

const EPSILON = 1e-9;

/** Nothing behind it is tried. */
const NO_MORE = -1;

const addRows = (parts: RowRanges[], run: RunId, from: number, count: number): void => {
  const last = parts.at(-1);
  if (last?.run === run) {
    const ranges = last.ranges as number[];
    if (ranges.at(-2)! + ranges.at(-1)! === from) ranges[ranges.length - 1]! += count;
    else ranges.push(from, count);
  } else parts.push({ run, ranges: [from, count] });
};

const assignmentOf = (out: Map<number, Assignment>, agent: AgentId): Assignment => {
  let assignment = out.get(agent);
  if (assignment === undefined) out.set(agent, (assignment = { agent, parts: [] }));
  return assignment;
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

/** Notes that an agent was given rows. */
const handOut = (
  { now, out, heads }: Pass,
  agent: AgentLoad,
  { run, group }: Batch,
  from: Row,
  count: number,
): void => {
  agent.givenAt = now;
  addRows(assignmentOf(out, agent.offer.id).parts, run.id, from, count);
  if (group.dependents.length > 0 && (group.count === 1 || group.followers.length > 0))
    heads.push({ run, row: from, count, agent });
};

/** Fills one agent's slots with what comes before `end` in order. */
const fillAgent = (pass: Pass, agent: AgentLoad, end: Batch | undefined): void => {
  const { pool } = pass;
  let misses = SLOT_MISSES;
  let any = false;
  const view = agent.shares ? pool.accounts.view(agent) : undefined;
  /** What it has of the shape that was asked about last, and how many more of it fit. */
  let known: Placed | undefined;
  let asked: Shape | undefined;
  let most = 0;
  const roomFor = (_: Batch, shape: Shape): number => {
    if (shape === asked) return most;
    asked = shape;
    known = shape.own ? undefined : knownOf(agent, shape);
    return (most = Math.max(0, shape.own ? pool.roomForOwn(agent, shape) : pool.roomBeside(agent, shape, known)));
  };
  const give = (batch: Batch, shape: Shape, from: Row, count: number): void => {
    any = true;
    const expected = expectedMs(batch.run, batch.group);
    if (shape.own) pool.giveOwn(agent, shape, count, expected);
    else {
      known ??= newPlaced(agent, shape);
      known.expectedMs = expected;
      pool.give(agent, known, count, most);
    }
    handOut(pass, agent, batch, from, count);
    most -= count;
  };
  visitFitting(placesFor(pass, agent), roomIn(pass, agent, view?.free ?? agent.free), end, (shelf) => {
    any = false;
    asked = undefined;
    pass.waiting.offer(shelf, end, roomFor, give);
    if (any) view?.refresh();
    return any || (misses -= 1) > 0;
  });
};

/** Fills one agent's backlog with at most `share` tasks. */
const fillBacklog = (pass: Pass, agent: AgentLoad, share: number): void => {
  let misses = BACKLOG_MISSES;
  let budget = share;
  let full = false;
  // what comes later does not overtake what came earlier in its own bucket
  const passed: Tally[] = [];
  let known: Placed | undefined;
  let asked: Shape | undefined;
  let atOnce = 0;
  const roomFor = ({ run, group }: Batch, shape: Shape): number => {
    if (shape !== asked) {
      asked = shape;
      known = knownOf(agent, shape);
      atOnce = known?.most ?? concurrency(agent.offer.resources, shape.resources);
    }
    // one that does not fit even an empty agent keeps nobody back
    if (atOnce === 0) return 0;
    const load = prefetchLoad(pass.prefetch, expectedMs(run, group), atOnce) - agent.backlogLoad;
    const most = Math.min(budget, Math.floor(load * atOnce + EPSILON));
    full = most <= 0 || (agent.shares && !pass.pool.accounts.mayQueue(agent, known ?? newPlaced(agent, shape)));
    return full ? NO_MORE : most;
  };
  const give = (batch: Batch, shape: Shape, from: Row, count: number): void => {
    budget -= count;
    known ??= newPlaced(agent, shape);
    known.expectedMs = expectedMs(batch.run, batch.group);
    pass.pool.give(agent, known, count);
    handOut(pass, agent, batch, from, count);
  };
  visitFitting(placesFor(pass, agent), roomIn(pass, agent, agent.offer.resources), undefined, (shelf) => {
    if (passed.includes(shelf.tally)) return (misses -= 1) > 0;
    full = false;
    pass.waiting.offer(shelf, undefined, roomFor, give);
    if (budget <= 0) return false;
    if (!full) return true;
    passed.push(shelf.tally);
    return (misses -= 1) > 0;
  });
};

const roomsFor = (pool: AgentPool, members: readonly AgentLoad[], shape: Shape) =>
  members.map((agent) => ({
    agent: agent.offer.id,
    host: agent.offer.host,
    room: agent.backlog > 0 ? 0 : pool.roomFor(agent, shape),
  }));

/** Where the ranks of one task find room now. */
const gangFor = ({ pool, now }: Pass, shape: Shape): RankPlacement | undefined => {
  for (const [, members] of pool.byPilot(shape, now)) {
    const gang = placeRanks(shape.ranks!, roomsFor(pool, members, shape));
    if (gang === undefined) continue;
    const chosen = gang.agents.map((id) => pool.agents.get(id)!);
    if (pool.accounts.hasRoomFor(shape, chosen, gang.ranks)) return gang;
  }
  return undefined;
};

/** Places tasks whose ranks run together, each on the agents of one pilot. */
const placeGangs = (pass: Pass, shelf: Shelf, refused: Set<string>): void => {
  let gang: RankPlacement | undefined;
  pass.waiting.offer(
    shelf,
    undefined,
    (_, shape) => {
      const key = keyOf(shape);
      gang = refused.has(key) ? undefined : gangFor(pass, shape);
      if (gang === undefined) refused.add(key);
      return gang === undefined ? 0 : 1;
    },
    ({ run }, shape, from) => {
      pass.pool.giveRanks(shape, gang!);
      pass.gangs.push({ agent: gang!.agents[0]!, parts: [{ run: run.id, ranges: [from, 1] }], gang: gang! });
    },
  );
};

/** Fills slots in order, tasks with ranks in their turn; kept agents take only what they are kept for. */
export const fillSlots = (pass: Pass, active: readonly AgentLoad[]): void => {
  const places = [...pass.waiting.places()].filter((place) => place.gangs);
  if (places.length > 0) {
    const refused = new Set<string>();
    visitFitting(places, pass.pool.widest(), undefined, (shelf) => {
      const { mixed, shape } = shelf.tally;
      if (!mixed && refused.has(keyOf(shape))) return true;
      for (const agent of active) fillAgent(pass, agent, firstBatch(shelf));
      placeGangs(pass, shelf, refused);
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

/** Hands tasks ahead, behind those that were just placed and those that were handed ahead before and may begin. */
export const handAhead = (
  around: Around,
  out: Map<number, Assignment>,
  placed: readonly PlacedRows[],
  arrived: readonly Head[],
): void => {
  const behind = (head: Head, isNew: boolean): void => {
    const rows = rowsBehind(around, head, isNew);
    if (rows.length === 0) return;
    const { id } = head.agent.offer;
    const { ahead = [], ...assignment } = assignmentOf(out, id);
    out.set(id, { ...assignment, ahead });
    for (const row of rows) addRows(ahead, head.run.id, row, 1);
  };
  for (const { run, row, count, agent } of placed)
    if (!takesNothing(agent)) for (let i = 0; i < count; i += 1) behind({ run, row: row + i, agent }, true);
  for (const head of arrived) behind(head, false);
};
