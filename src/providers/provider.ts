import type { Resources } from "../core/resources.ts";

/**
 * The contract of a workload manager's driver. Five methods; all of them about many jobs at once, none of them about
 * tasks. A provider keeps no state that it cannot find again: job names are unique and start with the home's prefix.
 */
export interface Provider {
  /** What the largest single job could offer to a task, and what to call this manager. */
  describe(): Promise<{ readonly version: string; readonly largest: Resources }>;
  /** Hands a job over. The caller has recorded `job.name` before: if the answer is lost, `list` finds it. */
  submit(job: JobRequest): Promise<{ readonly nativeId: string }>;
  /** The state of each; an id that the manager no longer knows is `ended`. */
  poll(nativeIds: readonly string[]): Promise<ReadonlyMap<string, JobStatus>>;
  /** Ends jobs. One that has ended already is no error. */
  cancel(nativeIds: readonly string[]): Promise<void>;
  /** All living jobs whose name starts so, for adoption after a restart. */
  list(namePrefix: string): Promise<readonly { readonly name: string; readonly nativeId: string }[]>;
}

export interface JobRequest {
  readonly name: string;
  /** Made before, private to this job: logs and whatever finds it again. */
  readonly directory: string;
  /** What runs on each of its nodes. */
  readonly command: readonly string[];
}

export interface JobStatus {
  readonly state: "queued" | "active" | "ended" | "unknown";
  /** The manager's own word for it. */
  readonly raw: string;
  readonly reason?: string;
}
