import { type TaskElement, type TaskJob, carries, waits } from "../core/task-job.ts";
import type { JobsContext } from "./context.ts";
import type { JobNotes } from "./notes.ts";
import { keyOf } from "./roster.ts";

/** A job that continues without its agent for this long is cancelled, as on a dead node that nobody noticed. */
const WITHOUT_AGENT_MS = 60_000;

/**
 * Jobs that are to end: taken back, unable to start, without a task that waits for them, or for long without the agent
 * that had their task. Looks at every element: names are made only of those about which something is noted.
 */
export const createUnwanted = (
  { engine: { state } }: Pick<JobsContext, "engine">,
  notes: JobNotes,
  living: () => readonly TaskJob[],
): (() => readonly { readonly nativeId: string }[]) => {
  let withoutAgent = new Map<string, number>();
  return () => {
    const now = performance.now();
    const over: TaskElement[] = [];
    const gone = new Map<string, number>();
    for (const job of living()) {
      const run = state.runs.get(job.run);
      for (let i = 0; i < job.elements.length; i += 1) {
        const element = job.elements[i]!;
        if (element.state === "ended") continue;
        if (element.takenBack === true || (notes.unstartable.size > 0 && notes.unstartable.has(keyOf(job, i))))
          over.push(element);
        else if (carries(element)) {
          if (run === undefined || !waits(run, element.row)) over.push(element);
        } else if (state.agents.get(element.agent)?.ended !== 0) {
          const since = withoutAgent.get(keyOf(job, i)) ?? now;
          gone.set(keyOf(job, i), since);
          if (now - since > WITHOUT_AGENT_MS) over.push(element);
        }
      }
    }
    withoutAgent = gone;
    return over;
  };
};
