import type { TaskJobId } from "../core/ids.ts";
import { type TaskJob, carries, isOver } from "../core/task-job.ts";
import type { FoundJob, Provider } from "../managers/provider.ts";
import type { Changes } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import { intentIn, intentOf } from "./names.ts";
import type { JobNotes } from "./notes.ts";

/**
 * Finds jobs of tasks again by the digits in their names (rule 3): once before anything is submitted, and whenever the
 * answer to a submission was lost. A job of this home that belongs to no living intent is a stray and is cancelled;
 * jobs of other homes are never touched.
 */
export interface JobAdoption {
  readonly listed: boolean;
  /** Rejects when the manager does not answer; nothing may be submitted before it has resolved once. */
  catchUp(): Promise<void>;
}

/** No manager keeps a job that is older than this many. */
const LATEST = 200_000;

export const createJobAdoption = (
  { engine, agents, spools, mark, log }: Pick<JobsContext, "engine" | "agents" | "spools" | "mark" | "log">,
  provider: Provider,
  living: () => readonly TaskJob[],
  { notes, changes }: { readonly notes: JobNotes; readonly changes: Changes },
): JobAdoption => {
  const { state } = engine;
  let listed = false;

  /** Submitted, or about to be, but nobody knows under which id; of an array, perhaps only some. */
  const unanswered = (): TaskJob[] =>
    living().filter(
      ({ id, elements }) =>
        !notes.underway.has(id) &&
        elements.some(({ state: word, nativeId, agent }) => {
          if (word === "ended" || nativeId !== "") return false;
          return word !== "spent" || agents.link(agent)?.channel === undefined;
        }),
    );

  const byIntent = (jobs: readonly FoundJob[]): Map<string, FoundJob[]> => {
    const found = new Map<string, FoundJob[]>();
    for (const job of jobs) {
      const intent = intentIn(job.name);
      if (intent !== undefined) found.set(intent, [...(found.get(intent) ?? []), job]);
    }
    return found;
  };

  const adopt = (job: TaskJob, found: readonly FoundJob[]): void => {
    const nativeIds = job.elements.map(({ nativeId }) => nativeId);
    for (const [nth, { nativeId, array }] of found.entries())
      if (nativeIds[array?.element ?? nth] === "") nativeIds[array?.element ?? nth] = nativeId;
    const [first] = found;
    const elements = [...nativeIds.keys()].filter((i) => nativeIds[i] !== "");
    engine.commit({
      type: "task-job.changed",
      at: engine.clock(),
      job: job.id,
      nativeId: first!.array?.nativeId ?? first!.nativeId,
      nativeIds,
      elements,
      state: "queued",
    });
    log(`${job.jobName} was found in ${job.cluster} as ${first!.array?.nativeId ?? first!.nativeId}`);
  };

  /** The manager does not have these, or no longer. */
  const vanished = (job: TaskJob): void => {
    const reason = notes.errors.get(job.id) ?? "the manager does not have it";
    const over = [...job.elements.entries()].filter(([, element]) => {
      if (element.nativeId !== "") return false;
      return carries(element) || (element.state === "spent" && agents.link(element.agent)?.channel === undefined);
    });
    const lost = over.flatMap(([, { state: word, agent }]) => (word === "spent" ? [agent] : []));
    agents.lose(lost, "its job ended while nobody knew its id");
    changes.end(
      job,
      over.map(([i]) => i),
      reason,
    );
  };

  const cancelStrays = async (found: ReadonlyMap<string, readonly FoundJob[]>): Promise<void> => {
    const known = new Set(living().map(({ id }) => intentOf(mark, id)));
    const unknown = [...found].filter(([intent]) => !known.has(intent));
    if (unknown.length === 0) return;
    const ours = new Set<string>();
    for (let id: TaskJobId = Math.max(1, state.nextTaskJob - LATEST); id < state.nextTaskJob; id += 1) {
      const job = state.taskJobs.get(id);
      if (job === undefined || isOver(job)) ours.add(intentOf(mark, id));
    }
    const strays = unknown.filter(([intent]) => ours.has(intent)).flatMap(([, jobs]) => jobs);
    if (strays.length === 0) return;
    log(`cancelling jobs of tasks that nobody waits for: ${strays.map(({ nativeId }) => nativeId).join(", ")}`);
    await provider.cancel(strays.map(({ nativeId }) => nativeId));
  };

  return {
    get listed() {
      return listed;
    },
    catchUp: async () => {
      const missing = unanswered();
      if (missing.length === 0 && (listed || state.nextTaskJob === 1)) {
        listed = true;
        return;
      }
      const found = byIntent(await provider.list(""));
      // what agents wrote on their way out counts before they are given up
      if (missing.some(({ elements }) => elements.some(({ state: word }) => word === "spent")))
        await spools.importAll();
      for (const job of missing) {
        const jobs = found.get(intentOf(mark, job.id));
        if (jobs !== undefined) adopt(job, jobs);
        // elements that have ended before anybody learned their ids are in no list
        vanished(job);
      }
      if (!listed) await cancelStrays(found);
      listed = true;
    },
  };
};
