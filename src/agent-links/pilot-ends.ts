import type { State } from "../core/state.ts";
import type { AgentId, PilotId } from "../core/ids.ts";

/**
 * Pilots that must end, as one of their agents has reported. A manager may tell only the first node (PBS, after qdel)
 * and kill the others some seconds later without a word: so the server tells the pilot's other agents, at once or when
 * they connect, and they end as if the manager had told them. It is over when the last of them has left.
 */
export interface PilotEnds {
  /** An agent reports that its pilot ends. */
  told(agent: AgentId, reason: string): void;
  /** Why an agent that has just joined must end with its pilot; undefined if it need not. */
  reasonFor(agent: AgentId): string | undefined;
}

export const createPilotEnds = (
  state: State,
  linked: () => Iterable<{ readonly id: AgentId }>,
  drain: (agent: AgentId, now: boolean, reason: string) => void,
): PilotEnds => {
  /** By pilot, with the agents that this concerns. */
  const ends = new Map<PilotId, { readonly reason: string; readonly agents: Set<AgentId> }>();
  const pilotOf = (agent: AgentId): PilotId => state.agents.get(agent)?.pilot ?? 0;
  return {
    told: (agent, reason) => {
      const pilot = pilotOf(agent);
      // agents started by hand have nothing to do with each other
      if (pilot === 0) return;
      // no more agents come from pilots that have ended
      for (const id of ends.keys()) if ((state.pilots.get(id)?.ended ?? 0) > 0) ends.delete(id);
      const agents = new Set<AgentId>();
      for (const { id } of linked()) if (pilotOf(id) === pilot) agents.add(id);
      ends.set(pilot, { reason, agents });
      for (const id of agents) if (id !== agent) drain(id, true, reason);
    },
    reasonFor: (agent) => {
      const end = ends.get(pilotOf(agent));
      if (end === undefined) return undefined;
      let isConcerned = end.agents.has(agent);
      for (const { id } of linked()) isConcerned ||= end.agents.has(id);
      if (isConcerned) end.agents.add(agent);
      // none of them is left: the manager has requeued the job and started the pilot again
      else ends.delete(pilotOf(agent));
      return isConcerned ? end.reason : undefined;
    },
  };
};
