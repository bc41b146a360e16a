import type { Shape } from "../core/run.ts";
import { type Accounts, createAccounts } from "./account.ts";
import {
  type AgentLoad,
  type AgentOffer,
  type Placed,
  add,
  addOwn,
  createLoad,
  knownOf,
  placedOf,
  release,
  releaseOwn,
  roomBeside,
  roomForOwn,
} from "./agent-load.ts";
import { NOTHING_BARRED, type Room } from "./fit-list.ts";
import type { RankPlacement } from "./gangs.ts";

/** All agents and what each has; remembers who may have room, and who has a backlog. */
export interface AgentPool {
  readonly agents: ReadonlyMap<number, AgentLoad>;
  /** Agents with tasks that wait there for a slot, and the number of those tasks. */
  readonly backlogged: ReadonlySet<AgentLoad>;
  readonly backlog: number;
  /** What agents share. */
  readonly accounts: Accounts;
  join(offer: AgentOffer): void;
  leave(id: number): void;
  pause(id: number, paused: boolean): void;
  setEnd(id: number, endsAt: number): void;
  setAhead(id: number, ahead: boolean): void;
  /** `fitting`: how many of them are known to fit into its slots. */
  give(agent: AgentLoad, placed: Placed, count: number, fitting?: number): void;
  take(agent: AgentLoad, placed: Placed, count: number): void;
  /** The same for tasks whose shapes come from items and that fit; one of them goes: false if it has none. */
  giveOwn(agent: AgentLoad, shape: Shape, count: number, expectedMs: number): void;
  takeOwn(agent: AgentLoad, shape: Shape): boolean;
  roomForOwn(agent: AgentLoad, shape: Shape): number;
  /** The same for the ranks of one task, spread over several agents. */
  giveRanks(shape: Shape, placement: RankPlacement): void;
  takeRanks(shape: Shape, placement: RankPlacement): void;
  /** Agents that may have got room since the last call, or all of them. Clears the list. */
  candidates(all: boolean): AgentLoad[];
  /** It may have room again, although nothing left it. */
  lookAgain(agent: AgentLoad): void;
  /** How many more tasks of a shape an agent may begin now. */
  roomFor(agent: AgentLoad, shape: Shape): number;
  /** The same for a caller that knows what it has of the shape. */
  roomBeside(agent: AgentLoad, shape: Shape, placed: Placed | undefined): number;
  belongs(agent: AgentLoad, place: Pick<Shape, "cluster" | "queue">): boolean;
  /** Agents that could ever run a shape, by pilot. */
  byPilot(shape: Shape, now: number): Map<number, AgentLoad[]>;
  /** At least what any agent has free: what does not fit into it fits nowhere. */
  widest(): Room;
}

export const secondsLeft = (agent: AgentLoad, now: number): number => (agent.endsAt - now) / 1000;

const belongsWith =
  (defaultCluster: string | undefined): AgentPool["belongs"] =>
  ({ offer }, { cluster, queue }) =>
    (cluster ?? defaultCluster ?? offer.cluster) === offer.cluster && (queue === undefined || queue === offer.queue);

const hasTime = (agent: AgentLoad, { timeRequest }: Shape, now: number): boolean =>
  timeRequest === 0 || secondsLeft(agent, now) >= timeRequest;

const byPilot = (
  agents: Iterable<AgentLoad>,
  shape: Shape,
  isAble: (agent: AgentLoad) => boolean,
): Map<number, AgentLoad[]> => {
  const pilots = new Map<number, AgentLoad[]>();
  for (const agent of agents) {
    if (!isAble(agent) || placedOf(agent, shape).most === 0) continue;
    const members = pilots.get(agent.offer.pilot);
    if (members === undefined) pilots.set(agent.offer.pilot, [agent]);
    else members.push(agent);
  }
  return pilots;
};

const widestOf = (agents: Iterable<AgentLoad>): Room => {
  const free: Record<string, number> = {};
  for (const agent of agents) for (const name in agent.free) free[name] = Math.max(free[name] ?? 0, agent.free[name]!);
  return { free, seconds: Infinity, barred: NOTHING_BARRED };
};

/** Those that may have got room, in order, and some that have left. A flag is cheaper than a set: every end adds one. */
const createRoomy = () => {
  let listed: AgentLoad[] = [];
  return {
    add: (agent: AgentLoad): void => {
      if (agent.roomy) return;
      agent.roomy = true;
      listed.push(agent);
    },
    takeAll: (): readonly AgentLoad[] => {
      const all = listed;
      listed = [];
      for (const agent of all) agent.roomy = false;
      return all;
    },
  };
};

/** `defaultCluster` is for tasks that name no cluster; without it they go anywhere. */
export const createAgentPool = (
  defaultCluster: string | undefined,
  accounts: Accounts = createAccounts(),
): AgentPool => {
  const agents = new Map<number, AgentLoad>();
  const roomy = createRoomy();
  const backlogged = new Set<AgentLoad>();
  let backlog = 0;

  const belongs = belongsWith(defaultCluster);
  const lookAgain = (agent: AgentLoad): void => {
    if (agents.get(agent.offer.id) === agent) roomy.add(agent);
  };

  const give = (agent: AgentLoad, placed: Placed, count: number, fitting = 0): void => {
    backlog -= agent.backlog;
    const before = placed.count;
    add(agent, placed, count, fitting);
    if (agent.shares) accounts.counted(agent, placed, before);
    backlog += agent.backlog;
    if (agent.backlog > 0) backlogged.add(agent);
  };

  /** Something has left an agent, which had this backlog. */
  const hasLeft = (agent: AgentLoad, had: number): void => {
    backlog += agent.backlog - had;
    if (agent.backlog === 0 && had > 0) backlogged.delete(agent);
    roomy.add(agent);
    if (agent.shares) for (const other of accounts.helped(agent)) lookAgain(other);
  };

  const take = (agent: AgentLoad, placed: Placed, count: number): void => {
    const had = agent.backlog;
    const before = placed.count;
    release(agent, placed, count);
    if (agent.shares) accounts.counted(agent, placed, before);
    hasLeft(agent, had);
  };

  const roomIn = (agent: AgentLoad, shape: Shape, placed: Placed | undefined): number =>
    Math.min(roomBeside(agent, shape, placed), accounts.room(agent, shape));

  return {
    agents,
    backlogged,
    accounts,
    get backlog() {
      return backlog;
    },
    join: (offer) => {
      const agent = createLoad(offer);
      agents.set(offer.id, agent);
      accounts.join(agent);
      roomy.add(agent);
    },
    leave: (id) => {
      const agent = agents.get(id);
      if (agent === undefined) return;
      for (const other of accounts.helped(agent)) lookAgain(other);
      accounts.leave(agent);
      backlogged.delete(agent);
      backlog -= agent.backlog;
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
    setAhead: (id, ahead) => {
      const agent = agents.get(id);
      if (agent !== undefined) agent.ahead = ahead;
    },
    give,
    take,
    giveOwn: (agent, shape, count, expectedMs) => {
      addOwn(agent, shape, count, expectedMs);
      accounts.charged(agent, shape, count);
    },
    takeOwn: (agent, shape) => {
      const had = agent.backlog;
      if (!releaseOwn(agent, shape)) return false;
      accounts.charged(agent, shape, -1);
      hasLeft(agent, had);
      return true;
    },
    roomForOwn: (agent, shape) => Math.min(roomForOwn(agent, shape), accounts.room(agent, shape)),
    giveRanks: (shape, { agents: ids, ranks }) => {
      for (const [i, agent] of ids.map((id) => agents.get(id)).entries())
        if (agent !== undefined) give(agent, placedOf(agent, shape), ranks[i]!);
    },
    takeRanks: (shape, { agents: ids, ranks }) => {
      for (const [i, id] of ids.entries()) {
        const agent = agents.get(id);
        if (agent === undefined) continue;
        const placed = knownOf(agent, shape);
        if (placed !== undefined) take(agent, placed, ranks[i]!);
      }
    },
    candidates: (all) => {
      const listed = roomy.takeAll();
      return all ? [...agents.values()] : listed.filter((agent) => agents.get(agent.offer.id) === agent);
    },
    lookAgain,
    roomFor: (agent, shape) => roomIn(agent, shape, knownOf(agent, shape)),
    roomBeside: roomIn,
    belongs,
    byPilot: (shape, now) =>
      byPilot(agents.values(), shape, (agent) => !agent.paused && belongs(agent, shape) && hasTime(agent, shape, now)),
    widest: () => widestOf(agents.values()),
  };
};
