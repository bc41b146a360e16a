import type { Shape } from "../core/run.ts";
import { type AgentLoad, placedOf } from "./agent-load.ts";
import { placeRanks } from "./gangs.ts";

/** Which agents to keep for the first task in order when it fits nowhere, so that small ones do not starve it. Pure. */

const leastLoaded = (members: readonly AgentLoad[]): AgentLoad =>
  members.reduce((best, agent) => (agent.count < best.count ? agent : best));

/** The agents that will be free soonest for a task that fits nowhere now; none if it never will. */
export const keepFor = (shape: Shape, pilots: Iterable<readonly AgentLoad[]>): ReadonlySet<AgentLoad> => {
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
 * What others may not use of an agent that is kept: all that the kept task still lacks there. What waits for a licence
 * keeps nobody from the cores. Ranks need all of theirs at once: nothing of it is given away.
 */
export const barredFor = (agent: AgentLoad, keptFor: Shape): ReadonlySet<string> => {
  const barred = new Set<string>();
  for (const name in keptFor.resources) {
    const asked = keptFor.resources[name]!;
    if (asked > 0 && (keptFor.ranks !== undefined || (agent.free[name] ?? 0) < asked)) barred.add(name);
  }
  return barred;
};
