import type { JobScriptInput } from "../launch/plan/job-scripts.ts";
import type { LaunchSpec } from "../launch/plan/launch-spec.ts";
import type { ChosenPool, Sizing } from "../launch/plan/plan.ts";
import type { RankDialect } from "../launch/plan/rank-scripts.ts";
import type { SizingInput } from "../launch/plan/sizing.ts";

/** How a launch is said to a manager: a user's own job, with one rank on each of its nodes. Pure. */
export interface LaunchDialect<Own = unknown> {
  /** What runs in users' names; everything else the server asks in its own. */
  readonly commands: readonly [submit: string, cancel: string];
  /** Variables that these commands need and that sudo would drop. */
  readonly variables: readonly string[];
  /** Where a launch has its users' options: `slurm.sbatch_args`. */
  readonly args: string;
  /** Reads these options only to refuse what users may not set. */
  checkArgs(args: readonly string[], refuse: RefuseOption): void;
  /** What the name of a project in its accounts cannot contain. */
  readonly notInProjects: RegExp;
  /** Sizes the job and writes its directives and its script. */
  job(sizing: SizingInput, ask: LaunchAsk<Own>, script: LaunchScript): LaunchJob;
  readonly rank: RankDialect;
}

export interface OptionRefusal {
  readonly entry: number;
  /** Absent: it is not an option at all. */
  readonly option?: string;
  readonly detail: string;
  readonly remedy: string;
}

/** Throws; or notes it down, and the option is left out. */
export type RefuseOption = (refusal: OptionRefusal) => void;

export interface LaunchAsk<Own = unknown> {
  readonly spec: LaunchSpec;
  readonly pool: ChosenPool<Own>;
  readonly jobName: string;
  readonly project: string | undefined;
  readonly directory: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly refuse: RefuseOption;
}

/** The part of its script that does not depend on the manager. */
export type LaunchScript = Omit<JobScriptInput, "directives">;

export interface LaunchDirectives {
  readonly lines: readonly string[];
  /** Seconds, where Slipway itself asked for a limit. */
  readonly walltime?: number;
  readonly notes: readonly string[];
}

export interface LaunchJob {
  readonly sizing: Sizing;
  readonly script: string;
  readonly directives: readonly string[];
  readonly walltime?: number;
  readonly notes: readonly string[];
}
