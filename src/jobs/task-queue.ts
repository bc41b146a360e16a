import type { Resources } from "../core/resources.ts";
import type { Group, Run, Shape } from "../core/run.ts";
import type { Row, TaskJobId } from "../core/ids.ts";
import type { Manager } from "../managers/manager.ts";
import type { JobRequest, Provider } from "../managers/provider.ts";
import type { TaskDialect } from "../managers/task-dialect.ts";

/** A queue to which tasks go as jobs of their own. */
export interface TaskQueue {
  readonly cluster: string;
  readonly queue: string;
  readonly manager?: Manager;
  /** The same object as that of its cluster's pilots: its polls are shared. */
  readonly provider: Provider;
  readonly policy: TaskPolicy;
  /** How long a silent agent keeps its task while its job seems to live. */
  readonly leaseMs: (timeLimit: number | undefined) => number;
  readonly names: Pick<TaskDialect, "jobName" | "mostInName">;
  /** Where its jobs' directories are; undefined: in `jobs/` of the home. */
  readonly logDirectory?: string;
  /** Every submission here needs room in the accounts first: it begins at once, or takes what the cluster shares. */
  readonly accounts: boolean;
  /**
   * Makes the job: writes its script and whatever else it needs into `directory`, which exists and is its own. Submits
   * nothing.
   */
  prepare(job: TaskStart): Promise<JobRequest>;
  /** Whether tasks like this one can be elements of one array. */
  readonly arrays: (group: Group) => boolean;
  /** Files in `directory` with what a job printed. */
  readonly outputs: readonly string[];
  readonly cleanup: "always" | "success" | "never";
}

/** What clusters.yaml says about tasks' jobs. */
export interface TaskPolicy {
  /** `n_max_queued_jobs`: submissions of one bucket that may wait in the manager. */
  readonly mostQueued: number;
  /** `repo_key`; undefined: from the run's directory. */
  readonly repoKey: string | undefined;
  readonly useNice: boolean;
}

export interface TaskStart {
  readonly id: TaskJobId;
  readonly jobName: string;
  readonly directory: string;
  readonly run: Run;
  readonly group: Group;
  readonly shape: Shape;
  /** One, or those of an array in the order of its elements. */
  readonly rows: readonly Row[];
  readonly nice: number | undefined;
}

/** With ranks: what all of them ask for together. */
export const wholeOf = ({ resources, ranks }: Pick<Shape, "resources" | "ranks">): Resources => {
  if (ranks === undefined) return resources;
  const all: Record<string, number> = {};
  for (const name in resources) all[name] = resources[name]! * ranks.count;
  return all;
};

/** How long a result waits for a server before it goes to the spool: nobody else can use the nodes meanwhile. */
const PATIENCE_MS = 30_000;
/** The same for an agent that no server has met: one that is started again takes longer than that. */
const FIRST_PATIENCE_MS = 180_000;

/** How the agent of a task's job waits for a server, wherever it runs. */
export const PATIENCE = { patienceMs: PATIENCE_MS, firstPatienceMs: FIRST_PATIENCE_MS } as const;

/** Seconds that the manager gives the job: a little more than the task's own limit, which the agent enforces. */
export const walltimeOf = (timeLimit: number | undefined, ofQueue: number | undefined): number | undefined =>
  timeLimit === undefined ? ofQueue : Math.ceil(timeLimit) + 60;
