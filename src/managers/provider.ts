import type { Resources } from "../core/resources.ts";

/**
 * The contract of a workload manager's driver. Five methods; all of them about many jobs at once, none of them about
 * tasks. A provider keeps no state that it cannot find again: job names are unique and start with the home's prefix.
 * An optional method that is absent is a power the manager lacks.
 */
export interface Provider {
  /** What this manager is, what the largest single node could offer to a task, and its partitions. */
  describe(): Promise<ClusterDescription>;
  /** Hands a job over. The caller has recorded `job.name` before: if the answer is lost, `list` finds it. */
  submit(job: JobRequest): Promise<Submitted>;
  /**
   * The state of each, with a bounded number of commands whatever the number of ids; an id that the manager no longer
   * knows, nor its history, is `ended` with the outcome `unknown`.
   */
  poll(nativeIds: readonly string[]): Promise<ReadonlyMap<string, JobStatus>>;
  /** Ends jobs. One may already have ended: that is not an error. */
  cancel(nativeIds: readonly string[]): Promise<void>;
  /** All living jobs whose name starts so, for adoption after a restart. */
  list(namePrefix: string): Promise<readonly FoundJob[]>;
  /** Lets the manager itself judge a job without running it; resolves with its own words, rejects when it refuses. */
  tryOut?(job: JobRequest): Promise<string>;
  /** Names of the licences that the whole cluster counts. */
  licences?(): Promise<readonly string[]>;
  /** How waiting jobs are ordered, where a submitter may lower their place by a nice value. */
  niceRules?(): Promise<NiceRules>;
  /** Gives waiting jobs other nice values; those that have begun or ended are left alone. */
  renice?(changes: readonly { readonly nativeId: string; readonly nice: number }[]): Promise<void>;
}

/** What a nice value means. */
export interface NiceRules {
  /** The priority of a waiting job whose nice value is 0, where one could be seen. */
  readonly priority?: number;
  /** Parameters of the manager's own configuration, as it says them. */
  readonly parameters: Readonly<Record<string, string>>;
}

export interface ClusterDescription {
  readonly version: string;
  readonly largest: Resources;
  /** Partitions (Slurm) or queues (the others); absent where there is no such thing. */
  readonly partitions?: readonly Partition[];
  /** The most elements that an array may have; absent: not known. */
  readonly mostInArray?: number;
  /** The accounts and qualities of service that our user may name; absent: not known, or any will do. */
  readonly accounts?: readonly string[];
  readonly qos?: readonly string[];
}

export interface Partition {
  readonly name: string;
  readonly isDefault: boolean;
  /** Takes and starts jobs now. */
  readonly isUp: boolean;
  readonly nodes: number;
  /** Of its largest node; 0 when unknown. */
  readonly cpusPerNode: number;
  readonly memoryPerNode: number;
  readonly gpusPerNode: number;
  readonly gpuTypes: readonly string[];
  /** Seconds; absent when there is no limit or it is not known. */
  readonly maxWalltime?: number;
}

export interface JobRequest {
  readonly name: string;
  /** Made before, private to this job: script, logs and whatever finds it again. */
  readonly directory: string;
  /** What runs on each of its nodes, where no script is needed: on this machine and in the simulation. */
  readonly command: readonly string[];
  /**
   * The path of the batch script, directives included: what a manager is given. It was written before, lies in
   * `directory`, and is submitted by its path so that the manager's own commands lead to it.
   */
  readonly script?: string;
  /** Options before the script, as words: what the script cannot contain. */
  readonly options?: readonly string[];
  /** In whose name it is submitted, when not in the server's. */
  readonly user?: string;
  /**
   * As one array of this many jobs, numbered from the dialect's first; only where the manager has arrays. The driver
   * says so to the manager: the script does not.
   */
  readonly array?: number;
}

export interface Submitted {
  readonly nativeId: string;
  /** Of an array: the id of each element, in order; `poll`, `cancel` and `list` know them by these. */
  readonly elements?: readonly string[];
  /** What else the manager said, such as a warning. */
  readonly note?: string;
}

export interface FoundJob {
  readonly name: string;
  readonly nativeId: string;
  /** Of an element of an array: the id of all of it, and its place there, counted from 0. */
  readonly array?: ArrayPlace;
}

export interface ArrayPlace {
  readonly nativeId: string;
  readonly element: number;
}

/**
 * Why a job ended. `lost`: its node went away; `preempted`: something else needed its place; `unknown`: the manager has
 * forgotten it, or says something that we do not know.
 */
export type JobOutcome =
  | "done"
  | "failed"
  | "cancelled"
  | "timeout"
  | "out-of-memory"
  | "lost"
  | "preempted"
  | "start-failed"
  | "unknown";

export interface JobStatus {
  readonly state: "queued" | "held" | "active" | "suspended" | "ended" | "unknown";
  /** The manager's own word for it. */
  readonly raw: string;
  /** The manager's own reason, as it says it. */
  readonly reason?: string;
  /** With `held`: it could not be started, and is not tried again before somebody steps in; the reason says why. */
  readonly stuck?: boolean;
  /** With `ended`. */
  readonly outcome?: JobOutcome;
  readonly exitCode?: number;
  readonly signal?: number;
  /** Host names, where the manager says. */
  readonly hosts?: readonly string[];
  /** The id under which the manager runs it again (a requeue that makes a new job). */
  readonly successor?: string;
}
