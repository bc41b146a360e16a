import type { OtherJobView, TaskJobView, TaskJobsView } from "../../api/job-schemas.ts";
import type { PilotView } from "../../api/schemas.ts";
import type { Row, TaskJobId } from "../../core/ids.ts";
import { type Group, type Run, type Shape, groupOf, shapeOfRow } from "../../core/run.ts";
import type { State } from "../../core/state.ts";
import { carries } from "../../core/task-job.ts";
import { type Carrier, type JobNews, carriersOf, taskJobLine, taskJobView } from "../../views/task-jobs.ts";
import type { JobSurroundings } from "../../views/why-job.ts";
import type { ManagerSays } from "../../views/why.ts";
import type { ServiceContext } from "./context.ts";

/** Jobs of tasks, and all that managers have, as the API sees them. */

export interface JobService {
  jobs(kind: "task" | "pilot"): OtherJobView[];
  /** What is there of tasks' jobs, by queue. */
  taskJobs(): TaskJobsView[];
  /** By row: the jobs of the tasks of a run, for people. */
  viewsOf(run: Run): (row: Row) => TaskJobView | null;
  /** Why a task of this run is not running; null: it goes through pilots. Without a row, any of its group. */
  around(run: Run, group: number, row: Row | undefined): JobSurroundings | null;
  /** What the manager says of the job that an agent is in, when it is held up. */
  stalled(job: TaskJobId, at: number): ManagerSays | null;
}

/** In the words of launches. */
export const stateOfPilot = (state: PilotView["state"]): OtherJobView["state"] =>
  state === "PMGR_ACTIVE"
    ? "running"
    : state === "DONE"
      ? "succeeded"
      : state === "FAILED"
        ? "failed"
        : state === "CANCELED"
          ? "cancelled"
          : "pending";

const pilotLine = (pilot: PilotView, jobName: string): OtherJobView => ({
  kind: "pilot",
  id: `pilot ${pilot.id}`,
  name: jobName,
  state: stateOfPilot(pilot.state),
  cluster: pilot.cluster,
  queue: pilot.queue,
  jobName,
  nativeId: pilot.nativeId,
  reason: pilot.waiting ?? pilot.reason,
  submitted: pilot.requested,
  since: pilot.active ?? pilot.requested,
});

const carriersOfAll = function* (state: State): Generator<readonly [Run, Carrier]> {
  for (const job of state.taskJobs.values()) {
    const run = state.runs.get(job.run);
    if (run !== undefined) for (const [at, element] of job.elements.entries()) yield [run, { job, element, at }];
  }
};

export const createJobService = (context: ServiceContext, pilots: () => readonly PilotView[]): JobService => {
  const { engine, taskJobs: keeper } = context;
  const { state } = engine;
  const news: JobNews = { says: keeper.waiting, directoryOf: keeper.directory };

  const firstQueue = (cluster: string): string =>
    [...(context.clusters.clusters.get(cluster)?.queues.keys() ?? [])][0] ?? "";
  /** Submissions that wait in the manager beside one of this shape. */
  const queuedLike = ({ bucket }: Shape): number => {
    const found = new Set<TaskJobId>();
    for (const [run, { job, element }] of carriersOfAll(state))
      if (carries(element) && shapeOfRow(groupOf(run.groups, element.row), element.row).bucket.key === bucket.key)
        found.add(job.id);
    return found.size;
  };

  /** A job that carries one of a group's tasks. */
  const anyCarrier = (run: Run, { first, count }: Group): Carrier | undefined => {
    for (const [row, id] of state.carried.get(run.id) ?? []) {
      const job = row >= first && row < first + count ? state.taskJobs.get(id) : undefined;
      const at = job?.elements.findIndex((each) => each.row === row && carries(each)) ?? -1;
      if (job !== undefined && at >= 0) return { job, element: job.elements[at]!, at };
    }
    return undefined;
  };

  const taskLines = (): OtherJobView[] =>
    [...carriersOfAll(state)]
      .map(([run, carrier]) => taskJobLine(run, carrier, news))
      .filter((line) => line !== undefined);
  const pilotLines = (): OtherJobView[] =>
    pilots()
      .filter(({ ended }) => ended === null)
      .map((pilot) => pilotLine(pilot, state.pilots.get(Number(pilot.id))?.jobName ?? ""));

  return {
    jobs: (kind) => (kind === "task" ? taskLines() : pilotLines()),
    taskJobs: () => {
      const found = new Map<string, { -readonly [key in keyof TaskJobsView]: TaskJobsView[key] }>();
      const at = (cluster: string, queue: string) => {
        const key = JSON.stringify([cluster, queue]);
        const known = found.get(key) ?? { cluster, queue, waiting: 0, queued: 0, running: 0, problem: null };
        found.set(key, known);
        return known;
      };
      for (const { shape, heads } of engine.scheduler.jobs.buckets())
        for (const { tasks } of heads()) {
          const cluster = shape.cluster ?? context.clusters.default;
          at(cluster, shape.queue ?? firstQueue(cluster)).waiting += tasks;
        }
      for (const [, { job, element }] of carriersOfAll(state)) {
        if (element.state === "spent") at(job.cluster, job.queue).running += 1;
        else if (element.state !== "ended") at(job.cluster, job.queue).queued += 1;
      }
      return [...found.values()].map((each) => ({ ...each, problem: keeper.unreachable(each.cluster) }));
    },
    viewsOf: (run) => {
      const carriers = carriersOf(state.taskJobs.values(), run.id);
      return (row) => {
        const carrier = carriers.get(row);
        return carrier === undefined ? null : taskJobView(carrier, news);
      };
    },
    around: (run, groupIndex, row) => {
      const group = row === undefined ? run.groups[groupIndex]! : groupOf(run.groups, row);
      if (group.spec.job === undefined) return null;
      const shape = row === undefined ? group.shape : shapeOfRow(group, row);
      const carrier = row === undefined ? anyCarrier(run, group) : carriersOf(state.taskJobs.values(), run.id).get(row);
      const waits = carrier !== undefined && carries(carrier.element);
      const cluster = shape.cluster ?? context.clusters.default;
      return {
        cluster,
        declared: context.clusters.clusters.has(cluster),
        blocked: context.blocked(),
        unusable: keeper.unreachable(cluster),
        refused: keeper.refused(shape),
        carrier: waits ? carrier : undefined,
        says: waits ? keeper.waiting(carrier.job.id, carrier.at) : null,
        queued: queuedLike(shape),
        most: keeper.mostQueued(shape),
        before: row === undefined ? undefined : engine.scheduler.before(run, row),
      };
    },
    stalled: keeper.waiting,
  };
};
