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
