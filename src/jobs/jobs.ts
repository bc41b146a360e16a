import type { AgentId, TaskJobId } from "../core/ids.ts";
import type { Shape } from "../core/run.ts";
import { type TaskJob, carries } from "../core/task-job.ts";
import type { Waiting } from "../managers/waiting-words.ts";
import type { Companion } from "../pilots/companion.ts";
import { directoryOf } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import { type TaskKeeper, createTaskKeeper } from "./keeper.ts";
import { directoryName } from "./names.ts";
import type { StandingRefusal } from "./refusals.ts";
import { createJobRoster, elementsOf } from "./roster.ts";
import type { TaskQueue } from "./task-queue.ts";

/** Keeps all tasks that are jobs of their own: one keeper for each cluster. */
export interface TaskJobs {
  /** Something may have changed: hands over what may be handed over now. */
  look(): void;
  /** The agent of a task's job has come. */
  joined(agent: AgentId): void;
  /** What the keeper of a cluster's pilots asks about together with them. */
  companion(cluster: string): Companion | undefined;
  /** The agents about whose jobs a manager is asked. */
  cared(): ReadonlySet<AgentId>;
  /** What the manager says of one that waits, or null. */
  waiting(job: TaskJobId, element: number): Waiting | null;
  /** Why nothing of a shape is submitted now, or null. */
  problem(shape: Shape): string | null;
  /** The same of a cluster's manager: why it cannot be asked. */
  unreachable(cluster: string): string | null;
  /** The manager's last refusal of a shape, while that waits to be tried again. */
  refused(shape: Shape): StandingRefusal | null;
  /** Its script, and what the job itself printed. */
  directory(job: TaskJob): string;
  /** How many submissions of a shape's bucket may wait in the manager. */
  mostQueued(shape: Shape): number;
  /** The queues of some clusters as they are written now; a cluster without any has gone. */
  change(clusters: Iterable<string>, next: readonly TaskQueue[]): void;
  /** Jobs that a node still needs its bundle for. */
  living(): readonly { readonly cluster: string; readonly queue: string; readonly jobName: string }[];
}

export interface TaskJobsOptions extends Omit<JobsContext, "roster" | "onWaiting"> {
  readonly queues: readonly TaskQueue[];
  readonly onWaiting?: JobsContext["onWaiting"];
}

export const createTaskJobs = (options: TaskJobsOptions): TaskJobs => {
  const { state } = options.engine;
  const roster = createJobRoster(state);
  const context: JobsContext = { onWaiting: () => undefined, ...options, roster };
  const clusters = [...new Set(options.queues.map(({ cluster }) => cluster))];
  const keepers = new Map<string, TaskKeeper>(
    clusters.map((cluster) => {
      const queues = options.queues.filter((queue) => queue.cluster === cluster);
      return [cluster, createTaskKeeper(cluster, queues, context)];
    }),
  );
  const keeperOf = (job: TaskJobId): TaskKeeper | undefined => keepers.get(state.taskJobs.get(job)?.cluster ?? "");

  const ofShape = ({ cluster }: Shape): TaskKeeper | undefined => keepers.get(cluster ?? options.defaultCluster);

  return {
    look: () => {
      for (const keeper of keepers.values()) keeper.decide();
    },
    joined: (agent) => {
      const of = state.agents.get(agent)?.taskJob;
      const keeper = of === undefined ? undefined : keeperOf(of.id);
      if (keeper !== undefined) keeper.joined(agent);
      else options.agents.drain(agent, true, "nobody knows its job");
    },
    companion: (cluster) => keepers.get(cluster),
    cared: () => {
      const agents = new Set<AgentId>();
      for (const cluster of keepers.keys())
        for (const { element } of elementsOf(roster.living(cluster))) if (!carries(element)) agents.add(element.agent);
      return agents;
    },
    waiting: (job, element) => keeperOf(job)?.waiting(job, element) ?? null,
    problem: (shape) => ofShape(shape)?.problem(shape) ?? null,
    unreachable: (cluster) => keepers.get(cluster)?.unreachable ?? null,
    refused: (shape) => ofShape(shape)?.refused(shape) ?? null,
    directory: (job) => directoryOf(context, keepers.get(job.cluster)?.queueOf(job), job),
    mostQueued: (shape) => ofShape(shape)?.mostQueued(shape.queue) ?? 0,
    change: (names, next) => {
      for (const cluster of names) {
        const queues = next.filter((queue) => queue.cluster === cluster);
        const keeper = keepers.get(cluster);
        if (queues.length === 0) keepers.delete(cluster);
        else if (keeper === undefined) keepers.set(cluster, createTaskKeeper(cluster, queues, context));
        else keeper.change(queues);
      }
    },
    living: () =>
      [...keepers.keys()].flatMap((cluster) =>
        roster.living(cluster).map((job) => ({ ...job, jobName: directoryName(job.jobName) })),
      ),
  };
};
