import type { OtherJobView, TaskJobView } from "../api/job-schemas.ts";
import type { RunId, Row, TaskJobId } from "../core/ids.ts";
import { attemptsOf } from "../core/past-attempts.ts";
import { type Run, indexOfRow } from "../core/run.ts";
import type { TaskElement, TaskJob } from "../core/task-job.ts";
import { isoTime, taskName } from "./views.ts";
import type { ManagerSays } from "./why.ts";

/** Jobs of tasks as the API shows them. */

/** The job that carries a task, or carried its last attempt, and which of its elements that is. */
export interface Carrier {
  readonly job: TaskJob;
  readonly element: TaskElement;
  /** Counted from 0. */
  readonly at: number;
}

/** What is known beside the state. */
export interface JobNews {
  /** Where its script is. */
  directoryOf(job: TaskJob): string;
  /** What the manager says of one that has not begun or has stopped, or null. */
  says(job: TaskJobId, at: number): ManagerSays | null;
}

/** By row, the last job of each task of a run. */
export const carriersOf = (jobs: Iterable<TaskJob>, run: RunId): ReadonlyMap<Row, Carrier> => {
  const found = new Map<Row, Carrier>();
  for (const job of jobs) {
    if (job.run !== run) continue;
    for (const [at, element] of job.elements.entries()) {
      const known = found.get(element.row);
      if (known === undefined || known.job.id < job.id) found.set(element.row, { job, element, at });
    }
  }
  return found;
};

const some = (text: string): string | null => (text === "" ? null : text);

/** What its manager knows it by: until it answered, nothing. */
export const nativeIdOf = ({ job, element }: Carrier): string | null => some(element.nativeId) ?? some(job.nativeId);

const STATES = { requested: "requested", queued: "queued", spent: "running", ended: "ended" } as const;

export const taskJobView = (carrier: Carrier, { directoryOf, says }: JobNews): TaskJobView => {
  const { job, element, at } = carrier;
  return {
    cluster: job.cluster,
    queue: job.queue,
    name: job.jobName,
    nativeId: nativeIdOf(carrier),
    state: STATES[element.state],
    says: element.state === "ended" ? null : (says(job.id, at)?.text ?? null),
    reason: some(element.reason),
    array: job.elements.length === 1 ? null : { element: at + 1, of: job.elements.length },
    directory: directoryOf(job),
    requested: isoTime(job.requested),
  };
};

/** One line of `jobs list`; undefined: its manager is done with it. */
export const taskJobLine = (run: Run, carrier: Carrier, news: JobNews): OtherJobView | undefined => {
  const { job, element } = carrier;
  if (element.state === "ended") return undefined;
  const begun = element.state === "spent" ? attemptsOf(run, element.row).at(-1) : undefined;
  const submitted = isoTime(job.requested);
  return {
    kind: "task",
    id: `${run.id}.${indexOfRow(run, element.row)}`,
    name: taskName(run, element.row),
    state: element.state === "spent" ? "running" : "pending",
    cluster: job.cluster,
    queue: job.queue,
    jobName: job.jobName,
    nativeId: nativeIdOf(carrier),
    reason: news.says(job.id, carrier.at)?.text ?? some(element.reason),
    submitted,
    since: begun === undefined ? submitted : isoTime(begun.started || begun.assigned),
  };
};
