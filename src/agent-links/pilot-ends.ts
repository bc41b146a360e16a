import type { State } from "../core/state.ts";
import type { AgentId } from "../core/ids.ts";

/**
 * Pilots that must end, as one of their agents has reported. A manager may tell only the first node (PBS, after qdel)
 * and kill the others some seconds later without a word: so the server tells the pilot's other agents, at once or when
 * they connect, and they end as if the manager had told them.
 */
export interface PilotEnds {
  /** An agent reports that its pilot ends. */
  told(agent: AgentId, reason: string): void;
  /** Why an agent that has just joined must end with its pilot; undefined if it need not. */
  reasonFor(agent: AgentId): string | undefined;
}

export const createPilotEnds = (
  state: State,
  linked: () => Iterable<{ readonly id: number }>,
  drain: (agent: AgentId, now: boolean, reason: string) => void,
): PilotEnds => {
  const reasons = new Map<number, string>();
  const pilotOf = (agent: AgentId): number => state.agents.get(agent)?.pilot ?? 0;
  return {
    told: (agent, reason) => {
      const pilot = pilotOf(agent);
      // agents started by hand have nothing to do with each other
      if (pilot === 0) return;
      // no more agents come from pilots that have ended
      for (const id of reasons.keys()) if ((state.pilots.get(id)?.ended ?? 0) > 0) reasons.delete(id);
      reasons.set(pilot, reason);
      for (const { id } of linked()) if (id !== agent && pilotOf(id) === pilot) drain(id, true, reason);
    },
    reasonFor: (agent) => reasons.get(pilotOf(agent)),
  };
};
