import type { State } from "../core/state.ts";
import type { AgentId } from "../core/ids.ts";

/**
 * Pilots that were told to end, as one of their agents has said. A manager may tell its first node alone (PBS, after
 * qdel) and kill the others some seconds later without a word: so the server tells the other agents of that pilot, at
 * once or when they come, and they end as if they had been told themselves.
 */
export interface PilotEnds {
  /** An agent says that its pilot ends. */
  told(agent: AgentId, reason: string): void;
  /** Why an agent that has just joined must end with its pilot; undefined: it need not. */
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
      // those that were started by hand have nothing to do with each other
      if (pilot === 0) return;
      // of pilots that have ended nobody comes any more
      for (const id of reasons.keys()) if ((state.pilots.get(id)?.ended ?? 0) > 0) reasons.delete(id);
      reasons.set(pilot, reason);
      for (const { id } of linked()) if (id !== agent && pilotOf(id) === pilot) drain(id, true, reason);
    },
    reasonFor: (agent) => reasons.get(pilotOf(agent)),
  };
};
