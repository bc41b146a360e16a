import type { Resources } from "../core/resources.ts";
import type { RankSpec } from "../core/spec.ts";
import type { PilotAsk } from "./manager.ts";

/** How a task is said to a manager as a job of its own. Pure. */
export interface TaskDialect<Own = unknown> {
  /** Keys of a task that only this manager understands, for documents and suggestions; not each index of each. */
  readonly keys: readonly string[];
  /**
   * A task's keys under their own names, aliases resolved. What is wrong goes to `refuse`, which throws.
   */
  read(keys: Readonly<Record<string, string>>, refuse: RefuseKey): Readonly<Record<string, string>>;
  /** What `-b` says; over the task's own keys and amounts. */
  backend(text: string, refuse: RefuseOption): BackendOptions;
  /** What `-b -h` prints. */
  readonly usage: string;
  /** Directive lines of a task's script. */
  directives(ask: TaskAsk<Own>): string[];
  /** A job's name without what the manager forbids there: replaced by what looks alike, at most this long. */
  jobName(text: string): string;
  readonly mostInName: number;
  /** Absent: it has no arrays that are of use. */
  readonly array?: {
    /** The variable with an element's number inside the job, and the number of the first one. */
    readonly variable: string;
    readonly first: number;
    /** Whether such tasks can be elements of one; absent: all can. */
    allows?(ask: Pick<TaskAsk<Own>, "keys" | "own">): boolean;
  };
  /** What starts the ranks of a task inside its own job, unless it says so itself. */
  readonly ranks: "srun" | "mpiexec";
  /** The variables with which the manager describes a job: its task gets them. */
  readonly variables: RegExp;
}

export type RefuseKey = (key: string, detail: string, remedy: string) => never;
export type RefuseOption = (option: string, detail: string) => never;

export interface BackendOptions {
  /** Usage was asked for. */
  readonly help: boolean;
  /** Amounts in units (cpus, mem, tmp): instead of the task's own. */
  readonly resources: Resources;
  readonly keys: Readonly<Record<string, string>>;
  /** What was ignored, for people. */
  readonly notices: readonly string[];
}

/** What the job of a task, or an array of such jobs, asks of its manager. */
export interface TaskAsk<Own = unknown> extends PilotAsk<Own> {
  /** The task's own keys, as `read` gave them. */
  readonly keys: Readonly<Record<string, string>>;
  /** What the task asks for that has no other field here: licences and named resources, in units. */
  readonly others: Resources;
  /** Which of these names the manager itself counts for the whole cluster. */
  readonly licences: ReadonlySet<string>;
  /** With ranks, cores, memory, gpus and tmp are those of each. */
  readonly ranks?: RankSpec;
  /** The number of elements. */
  readonly array?: number;
  readonly nice?: number;
}
