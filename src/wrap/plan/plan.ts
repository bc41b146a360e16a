import { quoteFor } from "../../core/shell-quoting.ts";
import { type ConfigValue, exportLine, isForWorkers, pythonText, variableOf } from "./environment.ts";
import { clockText, daskSeconds, minutesText, wholeSeconds } from "./durations.ts";
import { DASK_CONSTANTS, JOBQUEUE_CONSTANTS, type Parameter, type ParameterName, PARAMETERS } from "./parameters.ts";
import { badParameter, readParameters } from "./read-parameters.ts";
import type { PortRange, Value } from "./values.ts";

/** What the options and this machine add to the parameters. */
export interface PlanOptions {
  readonly ports: { readonly scheduler: number; readonly dashboard: number };
  readonly host?: string | undefined;
  /** --port-range; what internal-port-range is when it is not given. */
  readonly portRange?: PortRange | undefined;
  /** --python: an absolute path. */
  readonly python?: string | undefined;
  /** The name of its jobs: by it those are found whose ids got lost. */
  readonly jobName: string;
  /** Files of a certificate, where `security` asks for one. */
  readonly tls?: { readonly certificate: string; readonly key: string } | undefined;
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** All that is set, and where; the shim carries it out without a decision of its own. */
export interface Plan {
  /** Keys of every manager's section. */
  readonly jobqueue: Readonly<Record<string, Json>>;
  /** Keys of some managers' sections, over the others. */
  readonly managers: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  /** Where a section has the second key, it is set in place of the first. */
  readonly renamed: Readonly<Record<string, string>>;
  /** Lines before the worker: the user's (else those that are configured), then ours. */
  readonly prologue: {
    readonly own: readonly string[] | null;
    readonly exports: readonly string[];
    readonly managers: Readonly<Record<string, readonly string[]>>;
  };
  readonly dask: Readonly<Record<string, ConfigValue>>;
  /** Read as Dask reads a variable: what looks like a Python literal is one. */
  readonly texts: Readonly<Record<string, string>>;
  /** For workers that the shim starts itself, on this machine. */
  readonly variables: Readonly<Record<string, string>>;
  /** What a class for this machine is called with, where it takes it. */
  readonly local: Readonly<Record<string, Json>>;
  /** Parameters that a manager cannot do without, and that are missing. */
  readonly missing: Readonly<Record<string, string>>;
  readonly minimum: number;
  readonly maximum: number;
}

export interface Planned {
  readonly plan: Plan;
  readonly warnings: readonly string[];
}

const RESERVE = 60;
const LOST_WORKER = "1s";
/** A worker that finds no scheduler for so long ends by itself: what ends orphans. */
const DEATH_TIMEOUT = 60;

/** `$SLURM_JOB_CPUS_PER_NODE` is known to the shell of the job alone. */
const SLURM_LINES = ['export PYTHON_CPU_COUNT="$SLURM_JOB_CPUS_PER_NODE"'];

type Given = ReadonlyMap<ParameterName, Value>;
const ALL: readonly (Parameter & { readonly name: ParameterName })[] = PARAMETERS;

/** C: what walltime leaves after the stagger and a minute for an orderly end. */
export const lifetimeOf = (given: Given, warnings: string[]): string => {
  const walltime = daskSeconds(given.get("walltime"));
  const stagger = daskSeconds(given.get("lifetime-stagger"));
  const own = given.get("lifetime") as string | undefined;
  const lifetime = own === undefined ? walltime - stagger - RESERVE : daskSeconds(own);
  if (own === undefined && lifetime < 1)
    throw badParameter(
      "walltime",
      `${clockText(walltime)} leaves workers no lifetime: lifetime-stagger (${String(given.get("lifetime-stagger"))}) and 1m are taken off it`,
      `Ask for a walltime of at least ${clockText(stagger + RESERVE + 1)}, or set a shorter lifetime-stagger.`,
    );
  if (own !== undefined && lifetime <= 0)
    throw badParameter("lifetime", "must be more than nothing", "Write for example 20m, or leave it out.");
  if (stagger >= lifetime)
    warnings.push(
      `a worker lives lifetime ± lifetime-stagger: with ${wholeSeconds(lifetime)} ± ${wholeSeconds(stagger)} some end as soon as they start; set a shorter lifetime-stagger`,
    );
  if (lifetime + stagger > walltime)
    warnings.push(`lifetime and lifetime-stagger together are longer than walltime: the manager ends workers first`);
  return own ?? wholeSeconds(lifetime);
};

export const extraOf = (given: Given): Record<string, string> => {
  const extra = (given.get("extra_dask_config") ?? {}) as Record<string, string>;
  const instead: Readonly<Record<string, string>> = {
    "distributed.worker.lifetime": "lifetime",
    "distributed.worker.lifetime.duration": "lifetime",
    "distributed.worker.lifetime.stagger": "lifetime-stagger",
    "distributed.worker.resources": "dask-resources",
    "distributed.adaptive.target-duration": "target-duration",
  };
  for (const key of Object.keys(extra)) {
    const own = instead[key.replaceAll("_", "-")];
    const where = `extra_dask_config.${key}`;
    if (own !== undefined) throw badParameter(where, "has a parameter of its own", `Use ${own}.`);
    if (isForWorkers(key) && key !== key.toLowerCase())
      throw badParameter(where, "has capital letters, which a variable cannot carry", "Write it in small letters.");
  }
  return extra;
};

const tlsKeys = ({ certificate, key }: NonNullable<PlanOptions["tls"]>): Record<string, ConfigValue> => ({
  "distributed.comm.require-encryption": true,
  "distributed.comm.default-scheme": "tls",
  // signed by itself: the certificate is its own authority, and whoever has the key belongs here
  "distributed.comm.tls.ca-file": certificate,
  ...Object.fromEntries(
    ["scheduler", "worker", "client"].flatMap((role) => [
      [`distributed.comm.tls.${role}.cert`, certificate],
      [`distributed.comm.tls.${role}.key`, key],
    ]),
  ),
});

/** Options of `dask worker`, each a text for the worker's command line. */
const flagsOf = (given: Given, lifetime: string, threads: number, ports: PortRange | undefined): string[] => {
  const amounts = given.get("dask-resources") as Record<string, number> | undefined;
  const named = Object.entries(amounts ?? {}).map(([name, amount]) => `${name}=${amount}`);
  const words: [string, string][] = [
    ["--nthreads", String(threads)],
    ["--lifetime", lifetime],
    ["--lifetime-stagger", String(given.get("lifetime-stagger"))],
    ...(["--worker-port", "--nanny-port"] as const).flatMap((flag): [string, string][] =>
      ports === undefined ? [] : [[flag, `${ports.from}:${ports.to}`]],
    ),
    ...(named.length === 0 ? [] : [["--resources", named.join(",")] as [string, string]]),
  ];
  return words.map(([flag, value]) => `${flag} ${quoteFor(value, "word")}`);
};

/** B: what parameters set in every manager's section, and in some. */
const sectionsOf = (given: Given): { all: Record<string, Json>; some: Record<string, Record<string, Json>> } => {
  const all: Record<string, Json> = {};
  const some: Record<string, Record<string, Json>> = {};
  for (const { name, jobqueue = [], managers } of ALL) {
    const value = given.get(name) as Json | undefined;
    if (value === undefined || name === "job_script_prologue") continue;
    for (const key of jobqueue) {
      if (managers === undefined) all[key] = value;
      else for (const manager of managers) (some[manager] ??= {})[key] = value;
    }
  }
  (some["lsf"] ??= {})["walltime"] = minutesText(daskSeconds(given.get("walltime")));
  return { all, some };
};

/** A, C and E: Dask's own keys. */
export const daskOf = (given: Given, lifetime: string, tls: PlanOptions["tls"]): Record<string, ConfigValue> => {
  const keys: Record<string, ConfigValue> = {
    ...DASK_CONSTANTS,
    "distributed.deploy.lost-worker-timeout": LOST_WORKER,
  };
  for (const { name, dask } of ALL) {
    const value = name === "lifetime" ? lifetime : given.get(name);
    if (dask !== undefined && value !== undefined) keys[dask] = value as ConfigValue;
  }
  // a path with a variable is expanded by the job's shell, in the worker's option, and by nobody else
  if (String(given.get("tmpdir")).includes("$")) delete keys["temporary-directory"];
  return tls === undefined ? keys : { ...keys, ...tlsKeys(tls) };
};

/**
 * What a status file's parameters mean. Pure: nothing is asked of the site's configuration, which therefore cannot get
 * into the workers' environment.
 */
export const planOf = (body: unknown, options: PlanOptions): Planned => {
  const { given, warnings: first } = readParameters(body);
  const warnings = [...first];
  const { ports, host, portRange, python, jobName, tls } = options;
  const lifetime = lifetimeOf(given, warnings);
  const extra = extraOf(given);
  const cores = given.get("cores") as number;
  const throttle = given.get("transformation_throttle") as number;
  const threads = cores * throttle;
  const internal = (given.get("internal-port-range") as PortRange | undefined) ?? portRange;
  const { all, some } = sectionsOf(given);
  const dask = daskOf(given, lifetime, tls);
  for (const key of Object.keys(extra)) delete dask[key];
  const variables: Record<string, string> = { SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: String(throttle) };
  const settings = [...Object.entries(dask), ...Object.entries(extra)].filter(([key]) => isForWorkers(key));
  const exported = {
    ...variables,
    ...Object.fromEntries(settings.map(([key, value]) => [variableOf(key), pythonText(value)])),
  };
  const schedulerOptions = {
    port: ports.scheduler,
    dashboard_address: host === undefined ? `:${ports.dashboard}` : `${host}:${ports.dashboard}`,
    ...(host === undefined ? {} : { host }),
  };
  const range = internal === undefined ? undefined : `${internal.from}:${internal.to}`;
  const plan: Plan = {
    jobqueue: {
      ...JOBQUEUE_CONSTANTS,
      ...all,
      ...(python === undefined ? {} : { python: quoteFor(python, "word") }),
      name: jobName,
      "death-timeout": DEATH_TIMEOUT,
      "worker-extra-args": flagsOf(given, lifetime, threads, internal),
      "scheduler-options": schedulerOptions,
    },
    managers: some,
    renamed: { project: "account" },
    prologue: {
      own: (given.get("job_script_prologue") as readonly string[] | undefined) ?? null,
      exports: Object.entries(exported).map(([name, value]) => exportLine(name, value)),
      managers: { slurm: SLURM_LINES },
    },
    dask,
    texts: extra,
    variables,
    local: {
      n_workers: 0,
      threads_per_worker: threads,
      scheduler_port: ports.scheduler,
      dashboard_address: schedulerOptions.dashboard_address,
      ...(host === undefined ? {} : { host }),
      memory_limit: given.get("memory") as string,
      ...(range === undefined ? {} : { port: range, worker_port: range }),
    },
    missing: given.has("memory_per_core_property_name") ? {} : { oar: "memory_per_core_property_name" },
    minimum: given.get("interactive") === true ? 1 : 0,
    maximum: given.get("maximum_jobs") as number,
  };
  return { plan, warnings };
};
