import { type TaskJob, carries } from "../core/task-job.ts";
import { isWanted } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import type { JobNotes } from "./notes.ts";
import { elementsOf, keyOf } from "./roster.ts";

/** A job that continues without its agent for this long is cancelled, as on a dead node that nobody noticed. */
const WITHOUT_AGENT_MS = 60_000;

/**
 * Jobs that are to end: taken back, unable to start, without a task that waits for them, or for long without the agent
 * that had their task.
 */
export const createUnwanted = (
  { engine: { state } }: Pick<JobsContext, "engine">,
  notes: JobNotes,
  living: () => readonly TaskJob[],
): (() => readonly { readonly nativeId: string }[]) => {
  const withoutAgent = new Map<string, number>();
  return () => {
    const now = performance.now();
    const gone = new Set<string>();
    const over = [...elementsOf(living())].filter(({ job, i, element }) => {
      const key = keyOf(job, i);
      if (notes.takenBack.has(key) || notes.unstartable.has(key)) return true;
      if (carries(element)) return !isWanted(state, job, i);
      if (state.agents.get(element.agent)?.ended === 0) return false;
      gone.add(key);
      if (!withoutAgent.has(key)) withoutAgent.set(key, now);
      return now - withoutAgent.get(key)! > WITHOUT_AGENT_MS;
    });
    for (const key of withoutAgent.keys()) if (!gone.has(key)) withoutAgent.delete(key);
    return over.map(({ element }) => element);
  };
};
