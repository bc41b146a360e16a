import type { TaskJobId } from "../core/ids.ts";
import { timeLimitOf } from "../core/retry-set.ts";
import { type Shape, groupOf, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { type TaskJob, carries } from "../core/task-job.ts";
import type { JobStatus } from "../managers/provider.ts";
import type { Waiting } from "../managers/waiting-words.ts";
import { createPilotCancels } from "../pilots/pilot-cancels.ts";
import type { Companion } from "../pilots/companion.ts";
import type { Stop } from "../pilots/retiring.ts";
import { createJobAdoption } from "./adoption.ts";
import { createArrayLimit } from "./array-limit.ts";
import { createChanges } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import { createJobDeciding } from "./deciding.ts";
import { createJobEnds } from "./ends.ts";
import { type Joining, createJoining } from "./joining.ts";
import { createKeptQueues } from "./kept-queues.ts";
import { createNiceKeeper } from "./nice-keeper.ts";
import { createJobNotes } from "./notes.ts";
import { createPace } from "./pace.ts";
import { type StandingRefusal, createRefusals } from "./refusals.ts";
import { elementsOf, keyOf } from "./roster.ts";
import { createSubmitting } from "./submitting.ts";
import type { TaskQueue } from "./task-queue.ts";
import { createUnwanted } from "./unwanted.ts";

/**
 * Keeps the tasks' jobs of one cluster. It has no rhythm of its own: the keeper of the cluster's pilots asks the manager
 * about both at once, and after every pass of the scheduler this one looks whether more can be handed over.
 */
export interface TaskKeeper extends Companion, Pick<Joining, "joined"> {
  readonly cluster: string;
  /** Hands over what may be handed over: now, or soon where there is very much to look at. */
  decide(): void;
  /** What the manager says of one that waits, or null. */
  waiting(job: TaskJobId, element: number): Waiting | null;
  /** Why nothing of a shape is submitted now, or null. */
  problem(shape: Shape): string | null;
  /** Why the manager cannot be asked, or null. */
  readonly unreachable: string | null;
  refused(shape: Shape): StandingRefusal | null;
  /** How many submissions of one bucket may wait in the manager. */
  mostQueued(queue: string | undefined): number;
  /** The queue of a job, as it was when that was submitted. */
  queueOf(job: TaskJob): TaskQueue | undefined;
  /** The cluster's queues as they are written now; living jobs keep theirs. */
  change(next: readonly TaskQueue[]): void;
}

/** A silent agent of a queue that is gone keeps its task this long. */
const LEASE_MS = 60_000;
/** After `down --now`, what has not ended by itself in this time is cancelled. */
const STUBBORN_MS = 15_000;

/** What the task of an element asks for; undefined: it is gone. */
const shapesIn =
  (state: State) =>
  ({ run: id, elements }: TaskJob, i: number): Shape | undefined => {
    const run = state.runs.get(id);
    const row = elements[i]!.row;
    return run === undefined || row >= run.total ? undefined : shapeOfRow(groupOf(run.groups, row), row);
  };

export const createTaskKeeper = (cluster: string, declared: readonly TaskQueue[], context: JobsContext): TaskKeeper => {
  const { engine, agents, roster, host } = context;
  const { state } = engine;
  const { provider } = declared[0]!;
  const notes = createJobNotes();
  const refusals = createRefusals();
  const living = (): readonly TaskJob[] => roster.living(cluster);
  const kept = createKeptQueues(declared, living);
  const { now: queues, of: queueOf } = kept;
  const shapeOf = shapesIn(state);
  const changes = createChanges(context, notes, queueOf);
  const submitting = createSubmitting(context, { notes, refusals, changes });
  const adoption = createJobAdoption(context, provider, living, { notes, changes });
  const cancels = createPilotCancels(provider);
  const nice = createNiceKeeper(context, queues, living);
  let problem: string | null = null;
  let stopping: Stop | undefined;

  const ends = createJobEnds(context, {
    notes,
    changes,
    neverBegan: (job, i, reason) => {
      const shape = shapeOf(job, i);
      if (shape !== undefined) refusals.failed(shape, reason, performance.now());
    },
  });

  const joining = createJoining(context, {
    begun: (job, i) => {
      notes.said.delete(keyOf(job, i));
      const shape = shapeOf(job, i);
      if (shape !== undefined) refusals.taken(shape);
    },
    outgrown: (job, i) => changes.takeBack(job, [i]),
  });

  const deciding = createJobDeciding(context, {
    cluster,
    queues,
    living,
    notes,
    refusals,
    submitting,
    changes,
    nice,
    arrays: createArrayLimit(provider, engine.schedulePass, context.log),
    mayDecide: () => adoption.listed && problem === null && stopping === undefined && engine.listeners.mayPlace(),
  });

  // what was given away before this server came is still taken
  for (const { job, i } of elementsOf(living())) {
    const shape = shapeOf(job, i);
    if (queueOf(job)?.accounts === true && shape !== undefined)
      engine.scheduler.reservations.restore(keyOf(job, i), { cluster, queue: job.queue, host }, shape);
  }

  const unwanted = createUnwanted(context, notes, living);

  const pace = createPace(() => {
    deciding.decideAll();
    const leaving = unwanted();
    if (leaving.length > 0 && problem === null) void cancels.cancel(leaving).catch(() => undefined);
  });

  return {
    cluster,
    joined: joining.joined,
    decide: () => {
      joining.again();
      pace.due();
    },
    waiting: (job, element) => notes.said.get(`${job}.${element}`) ?? null,
    problem: (shape) => problem ?? refusals.words(shape),
    get unreachable() {
      return problem;
    },
    refused: (shape) => refusals.standing(shape, performance.now()),
    mostQueued: (queue) => (queues.find((each) => each.queue === queue) ?? queues[0]!).policy.mostQueued,

    queueOf,
    change: kept.change,

    catchUp: adoption.catchUp,
    ids: () => [...elementsOf(living())].map(({ element }) => element.nativeId).filter((id) => id !== ""),
    heard: async (answers: ReadonlyMap<string, JobStatus>, askedAt) => {
      for (const each of elementsOf(living())) {
        const answer = answers.get(each.element.nativeId);
        if (answer !== undefined) await ends.heard(queueOf(each.job), each, answer, askedAt);
      }
    },
    told: (said) => {
      problem = said;
    },
    loseSilent: () => {
      for (const { job, element } of elementsOf(living())) {
        const run = state.runs.get(job.run);
        const limit = run === undefined ? undefined : timeLimitOf(groupOf(run.groups, element.row), element.row);
        if (element.agent > 0) agents.loseSilent([element.agent], queueOf(job)?.leaseMs(limit) ?? LEASE_MS);
      }
    },
    look: async () => {
      await cancels.cancel(unwanted());
      joining.again();
      await nice.look();
      deciding.decideAll();
    },
    windDown: async (stop) => {
      stopping = stop;
      const late = stop.now && performance.now() - stop.since > STUBBORN_MS;
      for (const { job, i, element } of elementsOf(living())) if (carries(element) || late) changes.takeBack(job, [i]);
      await cancels.cancel(unwanted());
    },
    isEmpty: (unreachable) =>
      unreachable
        ? [...elementsOf(living())].every(({ element }) => agents.link(element.agent)?.channel === undefined)
        : living().length === 0,
  };
};
