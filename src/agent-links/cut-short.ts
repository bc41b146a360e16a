import { valueAt } from "../core/columns.ts";
import { Ending, type ResultColumns } from "../core/events.ts";
import type { State } from "../core/state.ts";
import type { AgentId } from "../core/ids.ts";
import type { AgentLink } from "./link.ts";

/**
 * Results of tasks whose own job was ended from outside, as at its walltime: their agent knows of a signal and nothing
 * more. They are held back, and the attempt stays open, until the manager has said why. What pilots' agents report like
 * this runs again at no cost; a task that is over its walltime would do so for ever.
 */
export interface CutShort {
  /** Whether these results are kept here instead. */
  holdBack(agent: AgentId, parts: readonly ResultColumns[]): boolean;
  of(agent: AgentId): ResultColumns | undefined;
  forget(agent: AgentId): void;
}

export const createCutShort = (
  { agents }: Pick<State, "agents">,
  linkOf: (agent: AgentId) => AgentLink | undefined,
): CutShort => {
  const held = new Map<AgentId, ResultColumns>();
  return {
    holdBack: (agent, parts) => {
      const [only] = parts;
      if (agents.get(agent)?.taskJob === undefined || only === undefined || linkOf(agent)?.told === true) return false;
      const ending = valueAt(only.ending, 0);
      if (ending !== Ending.INTERRUPTED && ending !== Ending.CUT_OFF) return false;
      held.set(agent, only);
      return true;
    },
    of: (agent) => held.get(agent),
    forget: (agent) => void held.delete(agent),
  };
};
