/**
 * Every parameter of a status file: its type, its default, and where its value goes. This table is the source: checks,
 * the plan and the table in docs/dask.md follow from it. A name may be written with dashes or underscores.
 */

export type ParameterType =
  /** One word of a directive or of the worker's command line: no spaces, no control characters. */
  | "word"
  | "size"
  | "walltime"
  | "duration"
  /** A whole number from 1. */
  | "count"
  | "flag"
  /** A list of lines, each without a line break. */
  | "directives"
  /** A list of lines of shell. */
  | "lines"
  | "port-range"
  /** A dict of amounts. */
  | "amounts"
  /** A dict of texts. */
  | "texts";

export interface Parameter {
  readonly name: string;
  readonly type: ParameterType;
  /** Written as in a status file. Without one, and not optional, it must be given. */
  readonly default?: string | number | boolean;
  readonly optional?: true;
  /** Keys of every manager's section of dask-jobqueue's configuration. */
  readonly jobqueue?: readonly string[];
  /** Only of these managers' sections; all that the installed dask-jobqueue has, when absent. */
  readonly managers?: readonly string[];
  /** The key that the installed distributed reads; also a variable of the workers where that is one of theirs. */
  readonly dask?: string;
  /** The seed's own word for it, where that differs: docs/dask.md shows both. */
  readonly seed?: string;
  /** A variable of the workers. */
  readonly variable?: string;
  /** Options of `dask worker`. */
  readonly flags?: readonly string[];
}

export const PARAMETERS = [
  { name: "walltime", type: "walltime", jobqueue: ["walltime"] },
  { name: "cores", type: "count", jobqueue: ["cores"] },
  { name: "memory", type: "size", jobqueue: ["memory"] },
  {
    name: "tmpdir",
    type: "word",
    default: "/tmp",
    jobqueue: ["local-directory", "temp-directory"],
    dask: "temporary-directory",
    seed: "jobqueue temp-directory",
  },
  { name: "partition", type: "word", optional: true, jobqueue: ["queue"] },
  { name: "job_extra_directives", type: "directives", optional: true, jobqueue: ["job-extra-directives"] },
  { name: "project", type: "word", optional: true, jobqueue: ["project"] },
  {
    name: "memory_per_core_property_name",
    type: "word",
    optional: true,
    jobqueue: ["memory-per-core-property-name"],
  },
  { name: "job_script_prologue", type: "lines", optional: true, jobqueue: ["job-script-prologue"] },
  { name: "job_cpu", type: "count", optional: true, jobqueue: ["job-cpu"], managers: ["slurm"] },
  {
    name: "unknown-task-duration",
    type: "duration",
    default: "1m",
    dask: "distributed.scheduler.unknown-task-duration",
  },
  {
    name: "target-duration",
    type: "duration",
    default: "10m",
    dask: "distributed.adaptive.target-duration",
    seed: "distributed.scheduler.target-duration",
  },
  {
    name: "internal-port-range",
    type: "port-range",
    optional: true,
    flags: ["--worker-port", "--nanny-port"],
    seed: "distributed.worker.port and distributed.nanny.port",
  },
  {
    name: "lifetime-stagger",
    type: "duration",
    default: "4m",
    dask: "distributed.worker.lifetime.stagger",
    flags: ["--lifetime-stagger"],
    seed: "distributed.worker.lifetime-stagger",
  },
  {
    name: "lifetime",
    type: "duration",
    optional: true,
    dask: "distributed.worker.lifetime.duration",
    flags: ["--lifetime"],
    seed: "distributed.worker.lifetime",
  },
  {
    name: "dask-resources",
    type: "amounts",
    optional: true,
    dask: "distributed.worker.resources",
    flags: ["--resources"],
  },
  {
    name: "transformation_throttle",
    type: "count",
    default: 3,
    variable: "SEAMLESS_WORKER_TRANSFORMATION_THROTTLE",
    flags: ["--nthreads"],
  },
  { name: "extra_dask_config", type: "texts", optional: true },
  { name: "interactive", type: "flag", default: false },
  { name: "maximum_jobs", type: "count" },
  { name: "security", type: "flag", default: false },
] as const satisfies readonly Parameter[];

export type ParameterName = (typeof PARAMETERS)[number]["name"];

/** What is refused, and why. */
export const REFUSED: Readonly<Record<string, string>> = {
  "worker-extra-args":
    "is not supported: it is superfluous, since what workers need goes into their environment, and the wrapper uses it itself",
};

/** Constants of every manager's section. */
export const JOBQUEUE_CONSTANTS = { processes: 1, python: "python" } as const;
/** Constants of Dask's configuration. */
export const DASK_CONSTANTS = { "distributed.worker.daemon": false } as const;
