import { SlipwayError } from "../errors.ts";
import { formatDuration } from "../core/quantities.ts";
import type { Resources } from "../core/resources.ts";
import type { Manager } from "../managers/manager.ts";
import { checkShape } from "./check-shape.ts";
import { BUILT_IN, CLUSTER_KEYS, type ClusterKeys, type ClusterValues } from "./cluster-keys.ts";
import { layerOf, type ClusterLayer, type Layer, type QueueLayer } from "./clusters-layer.ts";
import { BUILT_IN_FORMAT, type ClustersFormat } from "./clusters-schema.ts";
import { FLEET, type FleetConfig, finishFleet } from "./fleet-keys.ts";
import { pickKeys, type ReadKeys } from "./key-table.ts";
import { launchKeys, type LaunchKeys } from "./launch-keys.ts";
import { DEFAULT_QUEUE, mergeLayers, NOTHING, withTemplates } from "./merge-layers.ts";
import { suggest } from "./nearest.ts";
import { NO_PAGE_SETTINGS, type PageSettings } from "./page-keys.ts";
import { overlay, queueJob, refuseForeign, type QueueJob } from "./queue-job.ts";
import type { QueueValues } from "./queue-keys.ts";
import { badValue } from "./source.ts";
import { readYaml } from "./yaml-document.ts";

/** A named way to ask a cluster for jobs. */
export interface QueueConfig<Own = unknown> extends QueueJob<Own> {
  readonly name: string;
  readonly fleet: FleetConfig;
}

export interface ClusterConfig<Own = unknown, OwnOfCluster = unknown> extends Omit<
  ClusterValues,
  "grace" | "pin" | "executor" | "licences" | "nMaxQueuedJobs"
> {
  readonly name: string;
  readonly type: string;
  /** Of this type. */
  readonly manager: Manager;
  /** What only its manager understands. */
  readonly own: OwnOfCluster;
  readonly queues: ReadonlyMap<string, QueueConfig<Own>>;
  /** What was declared, in units; agents detect the rest. */
  readonly resources: Resources;
  /** What all its nodes share, in units. */
  readonly licences: Resources;
  /** Directory for the tasks' TMPDIRs; undefined: chosen by the agent. */
  readonly scratch?: string;
  /** Seconds between TERM and KILL. */
  readonly grace: number;
  readonly pin: boolean;
  readonly executor: "process" | "null";
  /** The most submissions of tasks as jobs of their own that wait in the manager, for each set of equal requests. */
  readonly nMaxQueuedJobs: number;
  /** What is written for `slipway launch`; src/launch/plan/settings.ts adds the defaults. */
  readonly launch: LaunchKeys;
}

export interface ClustersConfig {
  readonly default: string;
  readonly clusters: ReadonlyMap<string, ClusterConfig>;
  readonly limits: {
    readonly tasksPerRun: number;
    readonly losses: number;
    /** Bytes of output that are kept of an attempt, and of all tasks of a run. */
    readonly outputPerTask: number;
    readonly outputPerRun: number;
  };
  /** How people reach the page. */
  readonly page: PageSettings;
  /** Compaction deletes nothing, so that all of history can be read again. */
  readonly keepHistory: boolean;
  /** The files that were read, weakest first. */
  readonly files: readonly string[];
  /** What is probably not meant as it is written, though it can be read. */
  readonly warnings: readonly string[];
}

/** Reads the text of one clusters.yaml. Every problem is a SlipwayError with file, line and key. */
export const readClustersFile = (text: string, fileName: string, format: ClustersFormat = BUILT_IN_FORMAT): Layer => {
  const yaml = readYaml(text, fileName, format.plan);
  const input = checkShape(format.ClustersInput, yaml.value ?? {}, yaml, format.keysAt);
  return layerOf(format.keys, input, yaml, fileName);
};

/** Puts layers together, weakest first: clusters and queues by name, their keys one by one. */
export const combineClusters = (layers: readonly Layer[], keys: ClusterKeys = BUILT_IN): ClustersConfig => {
  const merged = mergeLayers(layers);
  const warnings = new Set<string>();
  const clusters = new Map(
    [...merged].map(([name, cluster]) => [name, finishCluster(keys, name, cluster, (text) => void warnings.add(text))]),
  );
  const named = layers.findLast((layer) => layer.default !== undefined);
  const chosen = named?.default ?? "local";
  if (named !== undefined && !clusters.has(chosen)) {
    badValue(named.source, ["default"], `there is no cluster '${chosen}'${suggest(chosen, clusters.keys())}`);
  }
  const limit = <K extends keyof ClustersConfig["limits"]>(key: K): number | undefined =>
    layers.findLast((layer) => layer[key] !== undefined)?.[key];
  return {
    default: chosen,
    clusters,
    limits: {
      tasksPerRun: limit("tasksPerRun") ?? 10_000_000,
      losses: limit("losses") ?? 5,
      outputPerTask: limit("outputPerTask") ?? 2 ** 30,
      outputPerRun: limit("outputPerRun") ?? 50 * 2 ** 30,
    },
    page: layers.findLast((layer) => layer.page !== undefined)?.page ?? NO_PAGE_SETTINGS,
    keepHistory: layers.findLast((layer) => layer.keepHistory !== undefined)?.keepHistory ?? false,
    files: layers.map((layer) => layer.file),
    warnings: [...warnings],
  };
};

const finishQueue = (
  keys: ClusterKeys,
  name: string,
  type: string,
  cluster: Pick<ClusterLayer, "shared" | "fleet" | "source" | "path">,
  layer: QueueLayer,
  defaults: FleetConfig,
): QueueConfig => {
  const { source, path } = Object.keys(layer.fleet ?? {}).length > 0 ? layer : cluster;
  const fleet = finishFleet(source, [...path, "fleet"], defaults, { ...cluster.fleet, ...layer.fleet });
  return { ...queueJob(keys, type, overlay(cluster.shared, layer)), name, fleet };
};

/** `slurm, pbs or local`. */
const either = (names: readonly string[]): string => `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;

type Warn = (text: string) => void;

/** A bare number is seconds here, but most managers' own options read something else. */
const warnOfWalltime = (title: string, { places }: ReadKeys, warn: Warn): void => {
  const { walltime: at } = places;
  const written = at?.source.written?.(at.path);
  if (at === undefined || typeof written !== "number") return;
  warn(
    `${at.source.locate(at.path).where}: walltime: ${written} is ${formatDuration(written)}: a bare number is seconds here, whatever ${title} reads (Slurm reads minutes). Write ${written}s, or ${written}m for minutes.`,
  );
};

const finishCluster = (keys: ClusterKeys, name: string, cluster: ClusterLayer, warn: Warn): ClusterConfig => {
  const { source, path, type, own, shared, queues: layers } = cluster;
  if (type === undefined) {
    return badValue(source, path, "has no type", `Add type: ${either(Object.keys(keys.managers))}.`);
  }
  if (name === "local" && type !== "local") {
    badValue(
      source,
      [...path, "type"],
      "the cluster named local is always of type local",
      "Give this cluster another name.",
    );
  }
  refuseForeign(keys, type, own);
  refuseTwice(cluster);
  const manager = keys.managers[type]!;
  const fleet = { ...FLEET, ...manager.fleet };
  const finish = (queue: string, layer: QueueLayer): [string, QueueConfig] => {
    if (manager.batch !== undefined) warnOfWalltime(manager.title, overlay(shared, layer), warn);
    return [queue, finishQueue(keys, queue, type, cluster, layer, fleet)];
  };
  const queues = new Map([...layers.keys()].map((queue) => finish(queue, withTemplates(queue, layers))));
  if (queues.size === 0) queues.set(...finish(DEFAULT_QUEUE, { ...NOTHING, source, path }));
  const { resources = {}, scratch } = shared.values as QueueValues;
  return {
    grace: 5,
    pin: false,
    executor: "process",
    licences: {},
    nMaxQueuedJobs: 10,
    ...pickKeys(CLUSTER_KEYS, own.values),
    launch: launchKeys(own.values, shared.values),
    ...(scratch === undefined ? {} : { scratch }),
    resources,
    name,
    type,
    manager,
    own: manager.cluster?.(own.values) ?? {},
    queues,
  };
};

/** One name is either each node's or the whole cluster's. */
const refuseTwice = ({ own, shared, queues }: ClusterLayer): void => {
  for (const [key, { source, path }] of Object.entries(own.places)) {
    const name = /^licences\.(.*)$/.exec(key)?.[1];
    if (name === undefined) continue;
    if ([shared, ...queues.values()].some(({ places }) => Object.hasOwn(places, `resources.${name}`)))
      badValue(
        source,
        path,
        `${name} is given in resources too`,
        "Write it in licences if all nodes share it, in resources if each has its own.",
      );
  }
};

/** The cluster a task names, or the default one; `no-such-cluster` with the nearest name otherwise. */
export const clusterNamed = (config: ClustersConfig, name = config.default): ClusterConfig => {
  const found = config.clusters.get(name);
  if (found === undefined) {
    throw new SlipwayError("no-such-cluster", { name, suggestion: suggest(name, config.clusters.keys()) });
  }
  return found;
};
