import type { TaskJobId } from "../core/ids.ts";
import type { TaskJob } from "../core/task-job.ts";
import type { TaskQueue } from "./task-queue.ts";

/** The queues of a cluster, which may be written anew while jobs of theirs live: those keep what they were made with. */
export interface KeptQueues {
  /** As they are written now. */
  readonly now: readonly TaskQueue[];
  /** As it was when the job was submitted, as far as this server knows. */
  of(job: TaskJob): TaskQueue | undefined;
  change(next: readonly TaskQueue[]): void;
}

export const createKeptQueues = (declared: readonly TaskQueue[], living: () => readonly TaskJob[]): KeptQueues => {
  const now = [...declared];
  const { provider } = now[0]!;
  const kept = new Map<TaskJobId, TaskQueue>();
  const of = (job: TaskJob): TaskQueue | undefined => kept.get(job.id) ?? now.find(({ queue }) => queue === job.queue);
  return {
    now,
    of,
    change: (next) => {
      const alive = living().map((job) => [job.id, of(job)] as const);
      kept.clear();
      for (const [id, queue] of alive) if (queue !== undefined) kept.set(id, queue);
      now.splice(0, now.length, ...next.map((queue) => ({ ...queue, provider })));
    },
  };
};
