import type { TaskElement, TaskJob } from "../core/task-job.ts";
import { isOver } from "../core/task-job.ts";
import type { State } from "../core/state.ts";

/** The jobs of tasks that have not ended. */
export interface JobRoster {
  living(cluster: string): readonly TaskJob[];
}

/** One element of a job that has not ended. */
export interface Living {
  readonly job: TaskJob;
  readonly i: number;
  readonly element: TaskElement;
}

export const keyOf = (job: Pick<TaskJob, "id">, i: number): string => `${job.id}.${i}`;

/** Jobs are numbered in order, so each look covers only those that are new since the last. */
export const createJobRoster = (state: State): JobRoster => {
  const living = new Map<string, Set<TaskJob>>();
  let next = 1;
  return {
    living: (cluster) => {
      if (next === 1) {
        for (const job of state.taskJobs.values()) add(living, job);
        next = state.nextTaskJob;
      }
      for (; next < state.nextTaskJob; next += 1) add(living, state.taskJobs.get(next));
      const jobs = living.get(cluster);
      if (jobs === undefined) return [];
      for (const job of jobs) if (isOver(job)) jobs.delete(job);
      return [...jobs];
    },
  };
};

const add = (living: Map<string, Set<TaskJob>>, job: TaskJob | undefined): void => {
  if (job === undefined || isOver(job)) return;
  living.set(job.cluster, (living.get(job.cluster) ?? new Set()).add(job));
};

export function* elementsOf(jobs: Iterable<TaskJob>): Generator<Living> {
  for (const job of jobs)
    for (let i = 0; i < job.elements.length; i += 1) {
      const element = job.elements[i]!;
      if (element.state !== "ended") yield { job, i, element };
    }
}
