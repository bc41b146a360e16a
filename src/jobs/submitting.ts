import { mkdir } from "node:fs/promises";
import { SlipwayError } from "../errors.ts";
import { taskJobName } from "../managers/task-job-name.ts";
import { sameShape } from "../core/run.ts";
import type { TaskJob } from "../core/task-job.ts";
import type { JobTasks } from "../scheduler/scheduler.ts";
import { type Changes, directoryOf, isWanted, taskNameOf } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import { defaultKey, intentOf } from "./names.ts";
import type { JobNotes } from "./notes.ts";
import type { Refusals } from "./refusals.ts";
import type { TaskQueue } from "./task-queue.ts";

/**
 * Hands tasks to a manager. The intent is on disk before the manager is asked (rule 3). When a submission ends in an
 * error that does not say whether the manager took it, it waits without a native id until a listing by name has shown
 * it.
 */
export interface Submitting {
  submit(queue: TaskQueue, tasks: JobTasks, nice: number | undefined): void;
}

/** The manager said no, in words. */
const isRefusal = (error: unknown): boolean => error instanceof SlipwayError && error.row.transient !== true;

/** The command could not even start: it was certainly not taken, and may be another time. */
const isUnasked = (error: unknown): boolean =>
  error instanceof Error &&
  error.name === "CommandError" &&
  (error as Error & { timedOut?: boolean }).timedOut !== true;

const detailOf = (error: unknown): string => {
  if (error instanceof SlipwayError && typeof error.facts["detail"] === "string") return error.facts["detail"];
  return (error as Error).message;
};

export const createSubmitting = (
  context: JobsContext,
  { notes, refusals, changes }: { readonly notes: JobNotes; readonly refusals: Refusals; readonly changes: Changes },
): Submitting => {
  const { engine, log, mark } = context;
  const { state } = engine;

  /** What waits of this shape fails: the manager takes none of it. */
  const giveUp = ({ shape }: JobTasks, words: string): void => {
    const parts = engine.scheduler.jobs.withdraw((each) => sameShape(each, shape));
    if (parts.length > 0) engine.commit({ type: "tasks.failed", at: engine.clock(), reason: words, parts });
  };

  const untaken = (job: TaskJob, tasks: JobTasks, error: unknown, asked: boolean): void => {
    const words = detailOf(error);
    log(`the job of ${taskNameOf(tasks.run, tasks.rows)} was not submitted to ${job.cluster}: ${words}`);
    const isOver = asked && isRefusal(error) && refusals.refused(tasks.shape, words, performance.now());
    if (!asked || !isRefusal(error)) refusals.failed(tasks.shape, words, performance.now());
    changes.end(job, [...job.elements.keys()], words);
    if (isOver) giveUp(tasks, `${job.cluster} refused its job: ${words}`);
  };

  const ask = async (queue: TaskQueue, job: TaskJob, tasks: JobTasks, nice: number | undefined): Promise<void> => {
    const directory = directoryOf(context, queue, job);
    let asked = false;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const { id, jobName } = job;
      const request = await queue.prepare({ id, jobName, directory, ...tasks, nice });
      // cancelled meanwhile, all of it
      if (!tasks.rows.some((_, i) => isWanted(state, job, i)))
        return changes.end(job, [...job.elements.keys()], "no longer needed");
      asked = true;
      const { nativeId, elements, note } = await queue.provider.submit(request);
      engine.commit({
        type: "task-job.changed",
        at: engine.clock(),
        job: id,
        nativeId,
        ...(elements === undefined ? {} : { nativeIds: elements }),
        state: "queued",
      });
      refusals.taken(tasks.shape);
      log(`${jobName} was submitted to ${queue.cluster} as ${nativeId}${note === undefined ? "" : `: ${note}`}`);
    } catch (error) {
      if (!asked || isRefusal(error) || isUnasked(error)) return untaken(job, tasks, error, asked);
      notes.errors.set(job.id, (error as Error).message);
      log(`${job.jobName} may have reached ${queue.cluster}; Slipway will look it up: ${(error as Error).message}`);
    }
  };

  return {
    submit: (queue, tasks, nice) => {
      const { cluster, queue: name, policy } = queue;
      const id = state.nextTaskJob;
      const key = policy.repoKey ?? defaultKey(tasks.run.spec.cwd);
      const jobName = taskJobName(queue.names, key, taskNameOf(tasks.run, tasks.rows), intentOf(mark, id));
      const intent = engine.commit({
        type: "task-job.requested",
        at: engine.clock(),
        job: id,
        cluster,
        queue: name,
        jobName,
        run: tasks.run.id,
        rows: tasks.rows,
      });
      const job = state.taskJobs.get(id)!;
      notes.underway.add(id);
      void engine
        .whenDurable(intent)
        .then(() => ask(queue, job, tasks, nice))
        .catch((error: unknown) => log(`${jobName}: ${(error as Error).message}`))
        .finally(() => {
          notes.underway.delete(id);
          engine.schedulePass();
        });
    },
  };
};
