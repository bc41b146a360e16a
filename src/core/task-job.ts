import type { Row, RunId, TaskJobId } from "./ids.ts";

/**
 * Tasks that are jobs of their own. A submission carries one task, or an array of tasks of one group with equal shape;
 * each is an element:
 *
 *     requested ──► queued ──► spent ──► ended
 *         │           │                    ▲
 *         └───────────┴────────────────────┘
 *
 *   requested   the intent is on disk; the manager may or may not have the job
 *   queued      the manager has it and it has not begun, as far as we know
 *   spent       its agent came and was given the task (`tasks.assigned`): whatever becomes of that attempt, this job
 *               carries no other one
 *   ended       the manager is done with it
 *
 * A waiting task is carried by an element that is requested or queued. When that ends, the task is ready again.
 */
export type ElementState = "requested" | "queued" | "spent" | "ended";

export interface TaskElement {
  readonly row: Row;
  state: ElementState;
  /** The manager's own, once known. */
  nativeId: string;
  reason: string;
}

export interface TaskJob {
  readonly id: TaskJobId;
  readonly cluster: string;
  readonly queue: string;
  readonly jobName: string;
  readonly run: RunId;
  readonly requested: number;
  /** The manager's id for all of it; empty until it answered. */
  nativeId: string;
  readonly elements: readonly TaskElement[];
}
