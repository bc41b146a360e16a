import type { ClusterKeys } from "./cluster-keys.ts";
import type { ClusterInput, ClustersInput, QueueInput } from "./clusters-schema.ts";
import { readFleet, type FleetLayer } from "./fleet-keys.ts";
import { readKeys, type ReadKeys, type Written } from "./key-table.ts";
import { reader } from "./layer-reader.ts";
import { type PageSettings, readPage } from "./page-keys.ts";
import type { Path, Source } from "./source.ts";
import { checkName } from "./text-rules.ts";

/** One clusters.yaml with its values worked out, each still knowing where it was written. */
export interface Layer {
  readonly file: string;
  /** It overrides what other layers declare, and declares nothing itself. */
  readonly overrides?: boolean;
  readonly source: Source;
  readonly default?: string;
  readonly clusters: ReadonlyMap<string, ClusterLayer>;
  readonly tasksPerRun?: number;
  readonly losses?: number;
  readonly keepHistory?: boolean;
  readonly outputPerTask?: number;
  readonly outputPerRun?: number;
  readonly page?: PageSettings;
}

export interface ClusterLayer extends Written {
  readonly type?: NonNullable<ClusterInput["type"]>;
  readonly own: ReadKeys;
  /** Keys of queues: they apply to those that have none of their own. */
  readonly shared: ReadKeys;
  /** Defaults for that of each queue. */
  readonly fleet?: FleetLayer;
  readonly queues: ReadonlyMap<string, QueueLayer>;
}

export interface QueueLayer extends Written, ReadKeys {
  readonly template?: string;
  readonly fleet?: FleetLayer;
}

const MAX_TASKS = 1_000_000_000;

/** Where each key of a map was written that is not in a table of keys. */
const placesOf = (source: Source, path: Path, input: object | undefined, prefix = ""): Record<string, Written> =>
  Object.fromEntries(Object.keys(input ?? {}).map((key) => [`${prefix}${key}`, { source, path: [...path, key] }]));

/** What stands for queues, in one or for all of a cluster. */
const readJobKeys = (keys: ClusterKeys, source: Source, path: Path, input: QueueInput | ClusterInput): ReadKeys => {
  const { values, places } = readKeys(keys.queue, source, path, input, keys.aliases);
  return { values, places: { ...places, ...placesOf(source, [...path, "fleet"], input.fleet, "fleet.") } };
};

const readQueue = (keys: ClusterKeys, source: Source, path: Path, input: QueueInput): QueueLayer => ({
  ...readJobKeys(keys, source, path, input),
  ...(input.template === undefined ? {} : { template: checkName(source, [...path, "template"], input.template) }),
  ...(input.fleet === undefined ? {} : { fleet: readFleet(source, [...path, "fleet"], input.fleet) }),
  source,
  path,
});

/** One cluster of a file, at its path there. */
export const readCluster = (keys: ClusterKeys, source: Source, path: Path, input: ClusterInput): ClusterLayer => {
  const queues = new Map<string, QueueLayer>();
  for (const [queue, inner] of Object.entries(input.queues ?? {})) {
    const at = [...path, "queues", queue];
    checkName(source, at, queue);
    queues.set(queue, readQueue(keys, source, at, inner));
  }
  const own = readKeys(keys.cluster, source, path, input);
  const typed = input.type === undefined ? {} : { type: input.type };
  return {
    ...typed,
    own: { ...own, places: { ...placesOf(source, path, typed), ...own.places } },
    shared: readJobKeys(keys, source, path, input),
    ...(input.fleet === undefined ? {} : { fleet: readFleet(source, [...path, "fleet"], input.fleet) }),
    queues,
    source,
    path,
  };
};

/** Works a file's values out. */
export const layerOf = (keys: ClusterKeys, input: ClustersInput, source: Source, file: string): Layer => {
  const clusters = new Map<string, ClusterLayer>();
  for (const [name, cluster] of Object.entries(input.clusters ?? {})) {
    const path = ["clusters", name];
    checkName(source, path, name);
    clusters.set(name, readCluster(keys, source, path, cluster));
  }
  const { out, key, whole, bytes } = reader(source, ["limits"], input.limits ?? {});
  key("tasks-per-run", whole(1, MAX_TASKS));
  key("losses", whole(0, 1_000_000));
  key("output-per-task", bytes);
  key("output-per-run", bytes);
  return {
    file,
    source,
    clusters,
    ...(input.default === undefined ? {} : { default: input.default }),
    ...(input.page === undefined ? {} : { page: readPage(source, input.page) }),
    ...(out["tasks-per-run"] === undefined ? {} : { tasksPerRun: out["tasks-per-run"] as number }),
    ...(input["keep-history"] === undefined ? {} : { keepHistory: input["keep-history"] }),
    ...(out["losses"] === undefined ? {} : { losses: out["losses"] as number }),
    ...(out["output-per-task"] === undefined ? {} : { outputPerTask: out["output-per-task"] as number }),
    ...(out["output-per-run"] === undefined ? {} : { outputPerRun: out["output-per-run"] as number }),
  };
};
