import type { Redirect } from "./redirect.ts";
import type { Resources } from "./resources.ts";
import type { SkipMode } from "./task-files.ts";
import type { RunId } from "./ids.ts";

/**
 * A run as the server keeps it: validated, defaults applied, names resolved. src/config turns the files and requests
 * that users write into this.
 */
export interface RunSpec {
  readonly name: string;
  /** Absolute directory that relative paths start from. */
  readonly cwd: string;
  /** The submitter's environment, captured once for the whole run. */
  readonly env: Readonly<Record<string, string>>;
  readonly groups: readonly GroupSpec[];
  /** More failed tasks than this cancel the rest. */
  readonly maxFails?: number;
  /** The run whose done tasks are skipped in this one. */
  readonly resumes?: RunId;
  /** Every task runs, whatever its outputs say. */
  readonly force?: true;
  /** How rows are numbered for people: a single array keeps its own numbers, everything else counts from 0. */
  readonly numbering: { readonly start: number; readonly step: number };
}

/** What a dependency waits for: all tasks DONE, all final, or at least one that did not succeed. */
export type Condition = "ok" | "any" | "failed";

/** How the tasks of two groups are matched by their items: by the item's text, or by the text of one of its fields. */
export type ItemMatch = "same" | { readonly by: string };

/** With `items` each task waits for those that match its own item; without, for all of the group. */
export type Dependency =
  | { readonly group: number; readonly on: Condition; readonly items?: ItemMatch }
  | { readonly run: RunId; readonly on: Condition };

/** A command: a list is executed unchanged, a string by /bin/sh -c. Both may hold placeholders. */
export type Command = readonly string[] | string;

/** The words that are executed. */
export const argvOf = (command: Command): readonly string[] =>
  typeof command === "string" ? ["/bin/sh", "-c", command] : command;

/**
 * How many tasks a group has and what `{item}` is in each. Values of a list may be strings or JSON values; those of a matrix
 * are made when they are needed.
 */
export type ItemSource =
  | { readonly kind: "one" }
  | { readonly kind: "range"; readonly from: number; readonly step: number; readonly count: number }
  | { readonly kind: "matrix"; readonly axes: readonly Axis[]; readonly count: number }
  | { readonly kind: "list"; readonly count: number };

/** One key of a matrix, and its values: those of ranges, one after the other, are numbers; all others are texts. */
export interface Axis {
  readonly name: string;
  readonly ranges?: readonly { readonly from: number; readonly step: number; readonly count: number }[];
  readonly values?: readonly string[];
}

/** One entry of a run's file: a template shared by all its tasks. */
export interface GroupSpec {
  readonly name: string;
  readonly command: Command;
  readonly items: ItemSource;
  /** What separates the columns of a line: `{item.0}`, `{item.1}`… */
  readonly colsep?: string;
  readonly after: readonly Dependency[];
  /** Requested amounts in integer units. */
  readonly resources: Resources;
  /** Amounts that depend on the item: name → text with placeholders or a formula, evaluated per task at submit. */
  readonly itemResources?: Readonly<Record<string, string>>;
  /** Amounts that depend on the attempt: name → formula. `resources`, or the item, say what the first one gets. */
  readonly attemptResources?: Readonly<Record<string, string>>;
  /** Amounts that are learned; `resources` holds what the first tasks get. */
  readonly auto?: { readonly mem?: boolean; readonly timeRequest?: boolean };
  readonly env?: Readonly<Record<string, string>>;
  /** Text with placeholders; relative to the run's cwd. */
  readonly cwd?: string;
  readonly stdout?: string;
  readonly stderr?: string;
  /** Files that its tasks make and read, with placeholders; relative to the task's directory. Nothing is moved. */
  readonly outputs?: readonly string[];
  readonly inputs?: readonly string[];
  /** When a task need not run; only where there are outputs. */
  readonly skip?: SkipMode;
  /** Append to output files instead of replacing them: several tasks may share one. */
  readonly append?: boolean;
  /** Seconds. */
  readonly timeLimit?: number;
  readonly timeRequest?: number;
  readonly priority: number;
  readonly retries: number;
  /** How often a task that was killed for memory is tried again with more; that spends no retry. */
  readonly memRetry?: number;
  /** Seconds between a failure and the next attempt. */
  readonly retryDelay: number;
  /** `null` answers at once without starting a process: it measures everything but the spawning. */
  readonly executor: "process" | "null";
  /** Bind the task's processes to its own cores. */
  readonly pin?: boolean;
  readonly cluster?: string;
  readonly queue?: string;
  /** It was meant for a cluster and runs here; `cluster` is local, and `resources` are as they were asked for. */
  readonly redirect?: Redirect;
  /** Several processes that run together; `resources` are those of each. */
  readonly ranks?: RankSpec;
  /** Each of its tasks is a batch job of its own; absent: they go through pilots. */
  readonly job?: JobSpec;
}

/** What the job of a task asks of its manager beside its resources. */
export interface JobSpec {
  /** Keys of a task that its cluster's manager alone understands (`partition`, `gres1`, `hard`), as it reads them. */
  readonly keys: Readonly<Record<string, string>>;
}

export interface RankSpec {
  readonly count: number;
  /** On exactly this many nodes, evenly; undefined: wherever they fit within one pilot. */
  readonly nodes?: number;
  /** What starts them: the agents, one process per rank, or one process on the first node that starts the others. */
  readonly by: "agents" | "mpiexec" | "srun";
}

/** How many tasks a group stands for. */
export const itemCount = (items: ItemSource): number => (items.kind === "one" ? 1 : items.count);

export const taskCount = (spec: RunSpec): number => spec.groups.reduce((sum, group) => sum + itemCount(group.items), 0);
