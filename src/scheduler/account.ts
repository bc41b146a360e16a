import { type Resources, amountOf } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";
import { type AgentLoad, type AgentOffer, type Placed } from "./agent-load.ts";

/**
 * Amounts that several agents share: those of this machine, and the licences of a cluster. Each agent offers them all;
 * the account bounds the sum.
 *
 * An agent starts what it has by itself. So it is charged with the most that the tasks it has could ever hold there at
 * once, whether they have a slot or wait for one: of each shape as many as it runs at once, and never more than it
 * offers. Where the charges fit into the account, so does what runs.
 */

/** What is shared, and by which agents of a cluster. */
export interface AccountRule {
  readonly cluster: string;
  /** It is a machine: a task that must be alone there takes all of it. */
  readonly machine?: true;
  readonly capacity: Resources;
  readonly covers: (offer: AgentOffer) => boolean;
}

interface Member {
  /** What its tasks could hold, if it offered enough. */
  readonly claim: Record<string, number>;
  /** It can never exceed the account by itself. */
  readonly within: boolean;
}

interface Account {
  readonly rule: AccountRule;
  /** Tasks, or ranks, that have the machine for themselves. */
  alone: number;
  readonly free: Record<string, number>;
  readonly members: Map<AgentLoad, Member>;
  /** Somebody outside its members waits for room, and comes first. */
  closed: boolean;
  /** Somebody got less than its agent had room for: whatever comes back may help any member. */
  short: boolean;
}

export interface Accounts {
  join(agent: AgentLoad): void;
  /** What the agent had is free again. */
  leave(agent: AgentLoad): void;
  /** The agent has `placed.count` tasks of this shape; before, it had `before`. */
  counted(agent: AgentLoad, placed: Placed, before: number): void;
  /** The agent has this many more tasks of this shape, and all of them have slots. */
  charged(agent: AgentLoad, shape: Shape, tasks: number): void;
  /**
   * How many more tasks of this shape the agent may begin; Infinity where nothing is shared. `first`: also where accounts
   * are closed.
   */
  room(agent: AgentLoad, shape: Shape, first?: boolean): number;
  /** Whether tasks may wait there for a slot: not if others could be kept from what is shared because of them. */
  mayQueue(agent: AgentLoad, placed: Placed): boolean;
  /** Whether these ranks may begin together. */
  hasRoomFor(shape: Shape, agents: readonly AgentLoad[], ranks: readonly number[]): boolean;
  /** What the agent has free, less what the accounts keep from it; its own table where they keep nothing. */
  view(agent: AgentLoad): { readonly free: Resources; refresh(): void };
  /** The names of which a shape that waits for `others` lacks some in an account that this agent shares with them. */
  lacking(shape: Shape, others: ReadonlySet<AgentLoad>, agent: AgentLoad): readonly string[];
  /** The agents that share something with this one, it included. */
  sharing(agent: AgentLoad): Iterable<AgentLoad>;
  /** Those that may have got room because this one gave something back. */
  helped(agent: AgentLoad): readonly AgentLoad[];
  /** Nobody begins anything on the machine of this cluster while it is closed. */
  close(cluster: string, closed: boolean): void;
  /** What is free in the accounts of a cluster. */
  freeIn(cluster: string): Resources;
}

const NOTHING_KEPT = (): void => undefined;
const NOBODY: readonly AgentLoad[] = [];

/** With ranks, all of them. */
const neededBy = (shape: Shape, name: string): number => amountOf(shape.resources, name) * (shape.ranks?.count ?? 1);

const chargeOf = ({ offer }: AgentLoad, { claim }: Member, name: string): number =>
  Math.min(amountOf(offer.resources, name), claim[name]!);

/** How much more of a resource an agent's tasks may claim. */
const headroom = (account: Account, agent: AgentLoad, member: Member, name: string): number => {
  const charge = chargeOf(agent, member, name);
  const free = account.free[name]!;
  return amountOf(agent.offer.resources, name) - charge <= free ? Infinity : charge + free - member.claim[name]!;
};

/** Nobody may begin anything there now. */
const isShut = ({ alone, closed }: Account): boolean => alone > 0 || closed;

/** No other agent shares it, and no task has it for itself. */
const isOwn = (account: Account, { within }: Member): boolean =>
  within && account.members.size === 1 && !isShut(account);

/** Nothing that is counted runs there. */
const isIdle = ({ rule, free, alone }: Account): boolean => {
  for (const name in free) if (free[name]! < rule.capacity[name]!) return false;
  return alone === 0;
};

/** Of a task that must be alone: whether the machine of this agent has nothing else to do. */
const isFreeFor = (covering: readonly Account[]): boolean => {
  const machine = covering.find(({ rule }) => rule.machine === true);
  if (machine === undefined) return false;
  machine.short = true;
  return isIdle(machine);
};

type Covering = readonly Account[];

/** `first`: it is for its sake that accounts are closed. */
const roomIn = (covering: Covering, agent: AgentLoad, { resources, alone, ranks }: Shape, first = false): number => {
  if (alone === true && !isFreeFor(covering)) return 0;
  let most = alone === true && ranks === undefined ? 1 : Infinity;
  for (const account of covering) {
    const member = account.members.get(agent)!;
    if (isOwn(account, member)) continue;
    if (account.alone > 0 || (account.closed && !first)) {
      account.short = true;
      return 0;
    }
    for (const name in account.free) {
      const asked = amountOf(resources, name);
      const left = asked === 0 ? Infinity : headroom(account, agent, member, name);
      if (left === Infinity) continue;
      account.short = true;
      most = Math.min(most, Math.max(0, Math.floor(left / asked)));
    }
  }
  return most;
};

/** Sets `free` to what the agent has free and its accounts do not keep from it. */
const keepBack = (covering: Covering, agent: AgentLoad, free: Record<string, number>): void => {
  Object.assign(free, agent.free);
  for (const account of covering) {
    const member = account.members.get(agent)!;
    for (const name in account.free) {
      const left = isShut(account) ? 0 : headroom(account, agent, member, name);
      if (left >= amountOf(free, name)) continue;
      account.short = true;
      free[name] = left;
    }
  }
};

const charge = (covering: Covering, agent: AgentLoad, { resources, alone }: Shape, tasks: number): void => {
  for (const account of covering) {
    const { rule, free, members } = account;
    if (alone === true && rule.machine === true) account.alone += tasks;
    const member = members.get(agent)!;
    for (const name in free) {
      const asked = amountOf(resources, name);
      if (asked === 0) continue;
      const before = chargeOf(agent, member, name);
      member.claim[name]! += tasks * asked;
      free[name]! -= chargeOf(agent, member, name) - before;
    }
  }
};

/** Whether further tasks of a shape raise no charge. */
const raisesNothing = (account: Account, agent: AgentLoad, { shape, count, most }: Placed): boolean => {
  const member = account.members.get(agent)!;
  if (shape.alone === true || isShut(account)) return false;
  if (isOwn(account, member) || count >= most) return true;
  for (const name in account.free)
    if (amountOf(shape.resources, name) > 0 && member.claim[name]! < amountOf(agent.offer.resources, name))
      return false;
  return true;
};

/** Whether an account has enough for the ranks that run on its members. */
const holdsRanks = (
  account: Account,
  { resources, alone }: Shape,
  agents: readonly AgentLoad[],
  ranks: readonly number[],
): boolean => {
  if (isShut(account) || (alone === true && account.rule.machine === true && !isIdle(account))) {
    account.short = true;
    return false;
  }
  const inside = agents.reduce((sum, agent, i) => sum + (account.members.has(agent) ? ranks[i]! : 0), 0);
  for (const name in account.free)
    if (inside * amountOf(resources, name) > Math.max(0, account.free[name]!)) {
      account.short = true;
      return false;
    }
  return true;
};

/** The names of which a shape needs more than is free, though there is enough in all. */
const lackingIn = ({ rule, free }: Account, shape: Shape): string[] =>
  Object.keys(free).filter((name) => {
    const needed = shape.alone === true && rule.machine === true ? rule.capacity[name]! : neededBy(shape, name);
    return needed > free[name]! && needed <= rule.capacity[name]!;
  });

export const createAccounts = (rules: readonly AccountRule[] = []): Accounts => {
  const accounts = rules.map((rule): Account => ({
    rule,
    free: { ...rule.capacity },
    alone: 0,
    closed: false,
    members: new Map(),
    short: false,
  }));
  const none: Covering = [];
  const ofAgent = new Map<AgentLoad, Covering>();
  const accountsOf = (agent: AgentLoad): Covering => (agent.shares ? (ofAgent.get(agent) ?? none) : none);

  return {
    join: (agent) => {
      const { offer } = agent;
      const covering = accounts.filter(({ rule }) => rule.cluster === offer.cluster && rule.covers(offer));
      agent.shares = covering.length > 0;
      if (agent.shares) ofAgent.set(agent, covering);
      for (const { rule, members } of covering) {
        const names = Object.keys(rule.capacity);
        members.set(agent, {
          claim: Object.fromEntries(names.map((name) => [name, 0])),
          within: names.every((name) => amountOf(offer.resources, name) <= rule.capacity[name]!),
        });
      }
    },
    leave: (agent) => {
      for (const account of accountsOf(agent)) {
        const { rule, free, members } = account;
        const member = members.get(agent)!;
        for (const name in free) free[name]! += chargeOf(agent, member, name);
        if (rule.machine === true)
          for (const { shape, count, most } of agent.placed)
            if (shape.alone === true) account.alone -= Math.min(count, most);
        members.delete(agent);
      }
      ofAgent.delete(agent);
      agent.shares = false;
    },
    counted: (agent, { shape, count, most }, before) => {
      if (!agent.shares) return;
      const more = Math.min(count, most) - Math.min(before, most);
      if (more !== 0) charge(accountsOf(agent), agent, shape, more);
    },
    charged: (agent, shape, tasks) => {
      if (agent.shares) charge(accountsOf(agent), agent, shape, tasks);
    },
    room: (agent, shape, first) =>
      agent.shares || shape.alone === true ? roomIn(accountsOf(agent), agent, shape, first) : Infinity,
    mayQueue: (agent, placed) => accountsOf(agent).every((account) => raisesNothing(account, agent, placed)),
    hasRoomFor: (shape, agents, ranks) =>
      [...new Set(agents.flatMap(accountsOf))].every((account) => holdsRanks(account, shape, agents, ranks)),
    view: (agent) => {
      const covering = accountsOf(agent);
      if (covering.length === 0) return { free: agent.free, refresh: NOTHING_KEPT };
      if (covering.every((account) => isOwn(account, account.members.get(agent)!)))
        return { free: agent.free, refresh: NOTHING_KEPT };
      const free: Record<string, number> = {};
      keepBack(covering, agent, free);
      return { free, refresh: () => keepBack(covering, agent, free) };
    },
    lacking: (shape, others, agent) =>
      accountsOf(agent)
        .filter(({ members }) => [...others].some((other) => members.has(other)))
        .flatMap((account) => lackingIn(account, shape)),
    sharing: (agent) => new Set([agent, ...accountsOf(agent).flatMap(({ members }) => [...members.keys()])]),
    helped: (agent) => {
      if (!agent.shares) return NOBODY;
      const covering = accountsOf(agent);
      if (!covering.some(({ short }) => short)) return NOBODY;
      const short = covering.filter((account) => account.short);
      for (const account of short) account.short = false;
      return short.flatMap(({ members }) => [...members.keys()]);
    },
    close: (cluster, closed) => {
      for (const account of accounts)
        if (account.rule.cluster === cluster && account.rule.machine === true) account.closed = closed;
    },
    freeIn: (cluster) => {
      const mine = accounts.filter(({ rule }) => rule.cluster === cluster);
      return Object.assign({}, ...mine.map(({ free }) => free)) as Resources;
    },
  };
};
