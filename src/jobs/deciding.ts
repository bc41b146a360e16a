import type { Row } from "../core/ids.ts";
import { type Run, type Shape, groupOf, shapeOfRow } from "../core/run.ts";
import { type TaskJob, carries, waits } from "../core/task-job.ts";
import { createLookAgain } from "../look-again.ts";
import type { JobBucket, JobHead } from "../scheduler/scheduler.ts";
import type { ArrayLimit } from "./array-limit.ts";
import type { Changes } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import { type Head, type Submission, decide } from "./decide.ts";
import type { NiceKeeper } from "./nice-keeper.ts";
import type { JobNotes } from "./notes.ts";
import type { Refusals } from "./refusals.ts";
import { keyOf } from "./roster.ts";
import type { Submitting } from "./submitting.ts";
import type { TaskQueue } from "./task-queue.ts";

/** Asks, bucket by bucket, what to submit and what to take back, and does it. */
export interface JobDeciding {
  decideAll(): void;
}

export interface JobDecidingOptions {
  readonly cluster: string;
  readonly queues: readonly TaskQueue[];
  readonly living: () => readonly TaskJob[];
  readonly notes: JobNotes;
  readonly refusals: Refusals;
  readonly submitting: Submitting;
  readonly changes: Pick<Changes, "takeBack">;
  readonly nice: NiceKeeper;
  readonly mayDecide: () => boolean;
  readonly arrays: ArrayLimit;
}

/** Submissions under way at once, on top of the limit on commands themselves. */
const MOST_UNDERWAY = 10;

export const createJobDeciding = (context: JobsContext, options: JobDecidingOptions): JobDeciding => {
  const { engine, host } = context;
  const { cluster, queues, living, notes, refusals, submitting, nice } = options;
  const { state, scheduler } = engine;
  const { jobs, reservations } = scheduler;
  const lookAgain = createLookAgain(engine.schedulePass);
  let isClosed = false;

  const queueFor = ({ cluster: wanted, queue }: Shape): TaskQueue | undefined =>
    (wanted ?? context.defaultCluster) === cluster
      ? queues.find((each) => queue === undefined || each.queue === queue)
      : undefined;

  const placeOf = ({ run, group, priority, pressure }: JobHead): Omit<Head, "tasks"> => ({
    priority,
    pressure,
    start: jobs.rankOf(run, group).start,
  });

  /** What waits in the manager, by bucket. */
  const submittedNow = (): Map<string, Submission[]> => {
    const all = new Map<string, Submission[]>();
    for (const job of living()) {
      const run = state.runs.get(job.run);
      if (run === undefined) continue;
      // the first that stays says all there is to know: of thousands of elements few are looked at
      let row: Row | undefined;
      let leaving = true;
      for (let i = 0; leaving && i < job.elements.length; i += 1) {
        const element = job.elements[i]!;
        if (!carries(element) || notes.begun.has(keyOf(job, i))) continue;
        row = element.row;
        leaving = element.takenBack === true || !waits(run, row);
      }
      if (row === undefined) continue;
      const group = groupOf(run.groups, row);
      const { key } = shapeOfRow(group, row).bucket;
      const submission = { id: job.id, priority: group.spec.priority, ...jobs.rankOf(run, group), leaving };
      const ofBucket = all.get(key);
      if (ofBucket === undefined) all.set(key, [submission]);
      else ofBucket.push(submission);
    }
    return all;
  };

  const takeBack = (ids: readonly number[]): void => {
    for (const id of ids) {
      const job = state.taskJobs.get(id);
      if (job === undefined) continue;
      const waiting = [...job.elements.keys()].filter(
        (i) => carries(job.elements[i]!) && !notes.begun.has(keyOf(job, i)),
      );
      options.changes.takeBack(job, waiting);
    }
  };

  const isFree = (run: Run, row: Row): boolean => waits(run, row) && state.carried.get(run.id)?.has(row) !== true;

  /** How many of the first tasks of a bucket have room in the accounts; it is kept for them. */
  const reserve = (queue: TaskQueue, bucket: JobBucket, most: number): number => {
    if (!queue.accounts) return most;
    const shape = bucket.first();
    if (shape === undefined) return 0;
    let n = 0;
    const place = { cluster, queue: queue.queue, host };
    while (n < most && reservations.reserve(keyOf({ id: state.nextTaskJob }, n), place, shape)) n += 1;
    return n;
  };

  /** False when nothing more of this bucket can be submitted now. */
  const submit = (queue: TaskQueue, bucket: JobBucket, most: number): boolean => {
    const id = state.nextTaskJob;
    const room = reserve(queue, bucket, most);
    const taken = room === 0 ? undefined : bucket.take(room);
    // what is queued twice, or was given away meanwhile, has its place elsewhere
    const rows = (taken?.rows ?? []).filter((row) => isFree(taken!.run, row));
    if (queue.accounts) for (let i = rows.length; i < room; i += 1) reservations.release(keyOf({ id }, i));
    if (taken === undefined) return false;
    if (rows.length > 0) submitting.submit(queue, { ...taken, rows }, nice.of(queue, taken));
    return true;
  };

  const decideBucket = (queue: TaskQueue, bucket: JobBucket, submitted: readonly Submission[]): void => {
    const { mostQueued } = queue.policy;
    const [first] = bucket.heads();
    const mostInArray = first !== undefined && queue.arrays(first.group) ? options.arrays.most() : 1;
    if (mostInArray === undefined) return;
    const heads = function* (): Generator<Head> {
      for (const head of bucket.heads()) yield { ...placeOf(head), tasks: head.tasks };
    };
    const decision = decide({
      limit: mostQueued,
      mostInArray,
      submitted,
      heads: heads(),
    });
    takeBack(decision.takeBack);
    for (const tasks of decision.submit)
      if (notes.underway.size >= MOST_UNDERWAY || !submit(queue, bucket, tasks)) return;
  };

  return {
    decideAll: () => {
      if (!options.mayDecide()) return;
      const now = performance.now();
      const submitted = jobs.total === 0 ? new Map<string, Submission[]>() : submittedNow();
      let wantsMachine = false;
      for (const bucket of jobs.buckets()) {
        const queue = queueFor(bucket.shape);
        if (queue === undefined || refusals.paused(bucket.shape, now) !== null) continue;
        decideBucket(queue, bucket, submitted.get(bucket.key) ?? []);
        wantsMachine ||= queue.accounts && notes.underway.size < MOST_UNDERWAY && jobs.isFirst(bucket);
      }
      if (wantsMachine !== isClosed) reservations.close(cluster, (isClosed = wantsMachine));
      lookAgain(refusals.next(now) - now);
    },
  };
};
