import { type ConfigValue, isForWorkers, pythonText, variableOf } from "./environment.ts";
import { daskSeconds } from "./durations.ts";
import type { ParameterName } from "./parameters.ts";
import { daskOf, extraOf, lifetimeOf } from "./plan.ts";
import { badParameter, readParameters } from "./read-parameters.ts";
import { bytesOf, type PortRange, type Value } from "./values.ts";

/** What the chosen queue says already: parameters that it gives may be left out. Sizes in bytes, times in seconds. */
export interface QueueFacts {
  readonly walltime?: number | undefined;
  readonly cores?: number | undefined;
  readonly memory?: number | undefined;
  readonly nodes: number;
  /** The most pilots. */
  readonly max: number;
}

export interface OwnPlanOptions {
  readonly queue: QueueFacts;
  readonly ports: { readonly scheduler: number; readonly dashboard: number };
  readonly host?: string | undefined;
  /** --port-range; what internal-port-range is when it is not given. */
  readonly portRange?: PortRange | undefined;
  readonly interface?: string | undefined;
  /** The head runs in a pilot too. */
  readonly isHeadInPilot?: boolean;
  /** Files of a certificate; absent where `security: false` wants none. */
  readonly tls?: { readonly certificate: string; readonly key: string } | undefined;
}

/** What parameters mean on Slipway's own path: to the queue, to the scheduler, to the workers, to the pool. */
export interface OwnPlan {
  /** Keys of the queue, as in clusters.yaml; they win over its own. */
  readonly queue: Readonly<Record<string, string | number | readonly string[]>>;
  readonly fleet: Readonly<Record<string, string | number>>;
  readonly scheduler: Readonly<Record<string, string | number>>;
  /** Dask's configuration for the scheduler, and texts that are read as Dask reads variables. */
  readonly dask: Readonly<Record<string, ConfigValue>>;
  readonly texts: Readonly<Record<string, string>>;
  readonly targetDuration: string;
  readonly worker: {
    /** All that a node of its job has. */
    readonly cpus: number;
    /** Options of `dask worker`, but for its name, its lifetime and its directory, which its node knows. */
    readonly options: readonly string[];
    readonly variables: Readonly<Record<string, string>>;
  };
  readonly minimum: number;
  readonly maximum: number;
  /** Workers of a job: one a node. */
  readonly perJob: number;
}

type Given = ReadonlyMap<ParameterName, Value>;

const DEATH_TIMEOUT = 60;
/** A pilot whose worker has ended is used again for this long, in seconds; one that is let go on purpose ends at once. */
const IDLE = 10;

/**
 * The fleet counts a head that asks for nothing as 1/1024 of a pilot. A parallelism a little below 1 makes that no pilot of
 * its own beside those of the workers; with very many workers one more pilot does not matter, and one less would.
 */
const parallelismOf = (isHeadInPilot: boolean, workers: number): number =>
  isHeadInPilot && workers < 900 ? 1 - 1 / 1000 : 1;

/** Whether a dict has a key, in either spelling. */
const has = (body: unknown, name: string): boolean =>
  typeof body === "object" &&
  body !== null &&
  Object.entries(body).some(([key, value]) => key.replaceAll("_", "-") === name.replaceAll("_", "-") && value !== null);

/** The queue's own values in place of what is not given. */
const completed = (body: unknown, { walltime, cores, memory, max }: QueueFacts): unknown => {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  const own: Record<string, unknown> = {
    ...(walltime === undefined ? {} : { walltime: `${walltime}s` }),
    ...(cores === undefined ? {} : { cores }),
    ...(memory === undefined ? {} : { memory: `${memory}B` }),
    maximum_jobs: max,
  };
  const missing = Object.entries(own).filter(([key]) => !has(body, key));
  return { ...body, ...Object.fromEntries(missing) };
};

/**
 * When pilots take nothing new, and so when their workers retire: lifetime ± stagger after their start. Nothing where
 * neither is given: a fleet works out its own from the walltime.
 */
const fleetLife = (body: unknown, given: Given, warnings: string[]): Record<string, number> => {
  const isStaggered = has(body, "lifetime-stagger");
  if (!given.has("lifetime") && !isStaggered) return {};
  if (!given.has("lifetime") && !given.has("walltime")) return {};
  const lifetime = given.has("walltime")
    ? daskSeconds(lifetimeOf(given, isStaggered ? warnings : []))
    : daskSeconds(given.get("lifetime"));
  if (lifetime <= 0)
    throw badParameter("lifetime", "must be more than nothing", "Write for example 20m, or leave it out.");
  const wanted = isStaggered ? daskSeconds(given.get("lifetime-stagger")) : lifetime / 10;
  const stagger = Math.min(wanted, lifetime / 2);
  return { lifetime: lifetime - stagger, stagger: 2 * stagger };
};

/** Which keys of a queue parameters become. */
const queueKeys = (body: unknown, given: Given): OwnPlan["queue"] => {
  const reserved = (given.get("job_cpu") ?? given.get("cores")) as number;
  const rows: [string, Value | undefined][] = [
    ["walltime", given.get("walltime")],
    ["cores", reserved],
    ["memory", `${bytesOf(given.get("memory") as string)}B`],
    ["scratch", has(body, "tmpdir") ? given.get("tmpdir") : undefined],
    ["partition", given.get("partition")],
    ["account", given.get("project")],
    ["options", given.get("job_extra_directives")],
    ["prologue", given.get("job_script_prologue")],
    ["memory-per-core-property-name", propertyOf(given.get("memory_per_core_property_name"))],
  ];
  return Object.fromEntries(rows.filter(([, value]) => value !== undefined)) as OwnPlan["queue"];
};

/** dask-jobqueue's word for OAR's "ask for no memory". */
const propertyOf = (name: Value | undefined): Value | undefined => (name === "not_applicable" ? "none" : name);

const workerOptions = (given: Given, threads: number, options: OwnPlanOptions): string[] => {
  const ports = (given.get("internal-port-range") as PortRange | undefined) ?? options.portRange;
  const range = ports === undefined ? undefined : `${ports.from}:${ports.to}`;
  const amounts = Object.entries((given.get("dask-resources") ?? {}) as Record<string, number>);
  return [
    ["--nthreads", String(threads)],
    ["--memory-limit", String(bytesOf(given.get("memory") as string))],
    ["--death-timeout", String(DEATH_TIMEOUT)],
    ...(range === undefined
      ? []
      : [
          ["--worker-port", range],
          ["--nanny-port", range],
        ]),
    ...(amounts.length === 0 ? [] : [["--resources", amounts.map(([name, amount]) => `${name}=${amount}`).join(",")]]),
    ...(options.interface === undefined ? [] : [["--interface", options.interface]]),
  ].flat();
};

/** Pure, as the seed's plan is; what both say of Dask's own keys is the same. */
export const ownPlanOf = (
  body: unknown,
  options: OwnPlanOptions,
): { readonly plan: OwnPlan; readonly warnings: readonly string[] } => {
  const { given, warnings: first } = readParameters(completed(body, options.queue), ["walltime"]);
  const warnings = [...first];
  const { ports, host, tls, queue } = options;
  const fleet = fleetLife(body, given, warnings);
  const extra = extraOf(given);
  const cores = given.get("cores") as number;
  const throttle = given.get("transformation_throttle") as number;
  const { "distributed.worker.lifetime.duration": _duration, ...rest } = daskOf(given, "", tls);
  const { "distributed.worker.lifetime.stagger": _stagger, "temporary-directory": _directory, ...dask } = rest;
  for (const key of Object.keys(extra)) delete dask[key];
  const settings = [...Object.entries(dask), ...Object.entries(extra)].filter(([key]) => isForWorkers(key));
  return {
    warnings,
    plan: {
      queue: queueKeys(body, given),
      fleet: {
        strategy: "auto",
        parallelism: parallelismOf(options.isHeadInPilot === true, (given.get("maximum_jobs") as number) * queue.nodes),
        idle: IDLE,
        ...fleet,
      },
      scheduler: {
        port: ports.scheduler,
        dashboard_address: host === undefined ? `:${ports.dashboard}` : `${host}:${ports.dashboard}`,
        ...(host === undefined ? {} : { host }),
      },
      dask,
      texts: extra,
      targetDuration: String(given.get("target-duration")),
      worker: {
        cpus: (given.get("job_cpu") ?? cores) as number,
        options: workerOptions(given, cores * throttle, options),
        variables: {
          SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: String(throttle),
          PYTHON_CPU_COUNT: String(given.get("job_cpu") ?? cores),
          ...Object.fromEntries(settings.map(([key, value]) => [variableOf(key), pythonText(value)])),
        },
      },
      minimum: given.get("interactive") === true ? 1 : 0,
      maximum: given.get("maximum_jobs") as number,
      perJob: queue.nodes,
    },
  };
};
