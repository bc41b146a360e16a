import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Row } from "../core/ids.ts";
import { type Run, groupOf } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { type TaskJob, carries, isOver, waits } from "../core/task-job.ts";
import type { JobsContext } from "./context.ts";
import { directoryName } from "./names.ts";
import type { JobNotes } from "./notes.ts";
import { keyOf } from "./roster.ts";
import type { TaskQueue } from "./task-queue.ts";

/** What happens to jobs of tasks, as events. */

export const directoryOf = (
  { home }: Pick<JobsContext, "home">,
  queue: TaskQueue | undefined,
  { jobName }: Pick<TaskJob, "jobName">,
): string => join(queue?.logDirectory ?? join(home, "jobs"), directoryName(jobName));

/** Whether an element still has a task that waits for it. */
export const isWanted = ({ runs }: Pick<State, "runs">, job: TaskJob, i: number): boolean => {
  const run = runs.get(job.run);
  const element = job.elements[i];
  return run !== undefined && element !== undefined && carries(element) && waits(run, element.row);
};

/** The name of a task, or of the tasks of an array. */
export const taskNameOf = (run: Run, rows: readonly Row[]): string => {
  const group = groupOf(run.groups, rows[0]!);
  const { name } = group.spec;
  const { start, step } = run.spec.numbering;
  return rows.length > 1 || group.count === 1 ? name : `${name}.${start + rows[0]! * step}`;
};

export interface Changes {
  /**
   * Their jobs are to leave the manager. That is kept, because not every manager can say later that one was cancelled
   * before it began: a successor must not take its end for a loss.
   */
  takeBack(job: TaskJob, elements: readonly number[]): void;
  /** The manager is done with these; a task that one of them carried may be placed again. */
  end(job: TaskJob, elements: readonly number[], reason: string): void;
}

export const createChanges = (
  context: JobsContext,
  notes: JobNotes,
  queueOf: (job: TaskJob) => TaskQueue | undefined,
): Changes => {
  const { engine, log } = context;

  const tidy = (job: TaskJob, queue: TaskQueue | undefined): void => {
    if (queue?.cleanup !== "always" && !(queue?.cleanup === "success" && job.elements.every(({ agent }) => agent > 0)))
      return;
    const directory = directoryOf(context, queue, job);
    void rm(directory, { recursive: true, force: true }).catch((error: unknown) =>
      log(`${directory} was not removed: ${(error as Error).message}`),
    );
  };

  return {
    takeBack: (job, elements) => {
      const staying = elements.filter((i) => {
        const element = job.elements[i];
        return element !== undefined && element.state !== "ended" && element.takenBack !== true;
      });
      if (staying.length === 0) return;
      const at = engine.clock();
      engine.commit({ type: "task-job.changed", at, job: job.id, elements: staying, takenBack: true });
    },
    end: (job, elements, reason) => {
      const open = elements.filter((i) => job.elements[i] !== undefined && job.elements[i].state !== "ended");
      if (open.length === 0) return;
      for (const i of open) {
        notes.forget(keyOf(job, i));
        engine.scheduler.reservations.release(keyOf(job, i));
      }
      engine.commit({
        type: "task-job.changed",
        at: engine.clock(),
        job: job.id,
        ...(open.length === job.elements.length ? {} : { elements: open }),
        state: "ended",
        ...(reason === "" ? {} : { reason }),
      });
      notes.errors.delete(job.id);
      if (isOver(job)) tidy(job, queueOf(job));
      engine.schedulePass();
    },
  };
};
