import { type Shape, sameShape } from "../core/run.ts";
import { type AgentLoad, placedOf } from "./agent-load.ts";
import type { AgentPool } from "./agent-pool.ts";
import { NOTHING_BARRED } from "./fit-list.ts";
import { placeRanks } from "./gangs.ts";

/** Which agents to keep for the first task in order while it fits nowhere, so that small tasks do not starve it. */

const leastLoaded = (members: readonly AgentLoad[]): AgentLoad =>
  members.reduce((best, agent) => (agent.count < best.count ? agent : best));

/** The agents that will be free soonest for a task that fits nowhere now; none if it never will fit. */
const keepFor = (shape: Shape, pilots: Iterable<readonly AgentLoad[]>): ReadonlySet<AgentLoad> => {
  let best: readonly AgentLoad[] = [];
  let least = Infinity;
  for (const members of pilots) {
    let chosen: readonly AgentLoad[] = [];
    if (shape.ranks === undefined) chosen = [leastLoaded(members)];
    else {
      const idleFirst = members.toSorted((a, b) => a.count - b.count);
      const rooms = idleFirst.map((agent) => ({ agent: agent.offer.id, room: placedOf(agent, shape).most }));
      const ids = new Set(placeRanks(shape.ranks, rooms)?.agents);
      chosen = idleFirst.filter(({ offer }) => ids.has(offer.id));
    }
    const load = chosen.reduce((sum, agent) => sum + agent.count, 0);
    if (chosen.length > 0 && load < least) [best, least] = [chosen, load];
  }
  return new Set(best);
};

/**
 * The resources of a kept agent that others may not use: those the kept task still lacks there. A task that waits for a
 * licence keeps nobody from the cores. Ranks need everything at once: none of it is given away.
 */
const barredFor = (agent: AgentLoad, keptFor: Shape): ReadonlySet<string> => {
  const barred = new Set<string>();
  for (const name in keptFor.resources) {
    const asked = keptFor.resources[name]!;
    if (asked > 0 && (keptFor.ranks !== undefined || (agent.free[name] ?? 0) < asked)) barred.add(name);
  }
  return barred;
};

/** The first task in order, while it fits nowhere, and the agents that take nothing after it until it does. */
export interface Kept {
  /** The resources of an agent that others may not use, because the agent is kept. */
  barredAt(agent: AgentLoad): ReadonlySet<string>;
  /** Releases kept agents when they are no longer needed: another shape is first, or an agent is gone. */
  review(first: Shape | undefined): void;
  /** Keeps agents for this shape, unless some are already kept. */
  keep(shape: Shape, now: number): void;
  letGo(): void;
}

export const createKept = (pool: AgentPool): Kept => {
  let kept: { readonly shape: Shape; readonly agents: ReadonlySet<AgentLoad> } | undefined;
  const { accounts } = pool;

  const letGo = (): void => {
    for (const agent of kept?.agents ?? []) for (const other of accounts.sharing(agent)) pool.lookAgain(other);
    kept = undefined;
  };

  /** What the kept task lacks in an account, others leave alone wherever they are. */
  const barredAt = (agent: AgentLoad): ReadonlySet<string> => {
    if (kept === undefined) return NOTHING_BARRED;
    const barred = kept.agents.has(agent) ? barredFor(agent, kept.shape) : NOTHING_BARRED;
    const lacking = accounts.lacking(kept.shape, kept.agents, agent);
    return lacking.length === 0 ? barred : new Set([...barred, ...lacking]);
  };

  return {
    barredAt,
    review: (first) => {
      if (kept === undefined) return;
      const whole = [...kept.agents].every((agent) => pool.agents.get(agent.offer.id) === agent && !agent.paused);
      if (!whole || first === undefined || !sameShape(first, kept.shape)) letGo();
    },
    keep: (shape, now) => {
      if (kept !== undefined) return;
      const agents = keepFor(shape, pool.byPilot(shape, now).values());
      if (agents.size > 0) kept = { shape, agents };
    },
    letGo,
  };
};
