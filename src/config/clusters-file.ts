import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SlipwayError } from "../errors.ts";
import type { Resources } from "../core/resources.ts";
import { checkShape, type KeysAt } from "./check-shape.ts";
import { layerOf, type ClusterLayer, type Layer, type QueueLayer } from "./clusters-layer.ts";
import { CLUSTERS_PLAN, ClusterInput, ClustersInput, QueueInput, type CLUSTER_TYPES } from "./clusters-schema.ts";
import { FLEET, type FleetConfig, FleetInput, LOCAL_FLEET, finishFleet } from "./fleet-keys.ts";
import { suggest } from "./nearest.ts";
import { decodeUtf8, reasonOf } from "./run-file.ts";
import { badValue, type Path, type Source } from "./source.ts";
import { readYaml } from "./yaml-document.ts";

export type ClusterType = (typeof CLUSTER_TYPES)[number];

/** A named way to ask a cluster for jobs. Sizes in bytes, times in seconds, `resources` in units. */
export interface QueueConfig {
  readonly name: string;
  readonly partition?: string;
  readonly account?: string;
  readonly qos?: string;
  readonly constraint?: string;
  readonly nodes: number;
  /** Per node; undefined: what the node has. */
  readonly cores?: number;
  readonly memory?: number;
  readonly gpus?: number;
  readonly tmp?: number;
  readonly resources: Resources;
  readonly walltime?: number;
  readonly launcher?: string;
  /** Options passed to the workload manager as they are. */
  readonly options: readonly string[];
  readonly prologue: readonly string[];
  readonly fleet: FleetConfig;
  /** What tasks get that still run so many seconds before their agent ends with its pilot. */
  readonly signal: string;
  readonly signalBefore: number;
}

export interface ClusterConfig {
  readonly name: string;
  readonly type: ClusterType;
  readonly launcher?: string;
  readonly queues: ReadonlyMap<string, QueueConfig>;
  /** Shell lines that run before the agent. */
  readonly prologue: readonly string[];
  /** What was declared, in units; a name that is not there is detected. */
  readonly resources: Resources;
  /** Directory for the tasks' TMPDIRs; undefined: chosen by the agent. */
  readonly scratch?: string;
  /** Seconds between TERM and KILL. */
  readonly grace: number;
  readonly pin: boolean;
  readonly executor: "process" | "null";
}

export interface ClustersConfig {
  readonly default: string;
  readonly clusters: ReadonlyMap<string, ClusterConfig>;
  readonly limits: { readonly tasksPerRun: number; readonly losses: number };
  /** The files that were read, weakest first. */
  readonly files: readonly string[];
}

export interface ClustersLocation {
  /** The home: `clusters.yaml` inside it. */
  readonly home: string;
  /** `--clusters FILE`; it must exist. */
  readonly explicitPath?: string | undefined;
  /** The run file: `clusters.yaml` in the same directory. */
  readonly besideFile?: string | undefined;
}

/** The queue of a cluster that declares none. */
export const DEFAULT_QUEUE = "default";

const keysAt: KeysAt = (path) => {
  if (path.at(-1) === "limits") return ["tasks-per-run", "losses"];
  if (path.at(-1) === "fleet") return Object.keys(FleetInput.shape);
  if (path.length === 4) return Object.keys(QueueInput.shape);
  return Object.keys(path.length === 2 ? ClusterInput.shape : ClustersInput.shape);
};

/** Reads the text of one clusters.yaml. Every problem is a SlipwayError with file, line and key. */
export const readClustersFile = (text: string, fileName: string): Layer => {
  const yaml = readYaml(text, fileName, CLUSTERS_PLAN);
  return layerOf(checkShape(ClustersInput, yaml.value ?? {}, yaml, keysAt), yaml, fileName);
};

const loadLayer = (path: string, required: boolean): Layer | undefined => {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw new SlipwayError("no-such-file", { where: "clusters", path, detail: reasonOf(error) }, error);
  }
  return readClustersFile(decodeUtf8(bytes, path), path);
};

/** Built-in defaults, then the home's clusters.yaml, then the one beside the run file, then `--clusters FILE`. */
export const loadClusters = ({ home, explicitPath, besideFile }: ClustersLocation): ClustersConfig => {
  const paths = new Map([[resolve(home, "clusters.yaml"), false]]);
  if (besideFile !== undefined) paths.set(resolve(join(dirname(besideFile), "clusters.yaml")), false);
  if (explicitPath !== undefined) {
    paths.delete(resolve(explicitPath));
    paths.set(resolve(explicitPath), true);
  }
  const layers = [...paths].map(([path, required]) => loadLayer(path, required)).filter((layer) => layer !== undefined);
  return combineClusters(layers);
};

/** Puts layers together, weakest first: clusters and queues by name, their keys one by one. */
export const combineClusters = (layers: readonly Layer[]): ClustersConfig => {
  const merged = new Map<string, ClusterLayer>([
    ["local", { source: NOWHERE, path: [], type: "local", queues: new Map() }],
  ]);
  for (const layer of layers) {
    for (const [name, cluster] of layer.clusters) {
      const before = merged.get(name);
      // Another type is another cluster: nothing of the weaker one applies.
      const other = cluster.type !== undefined && cluster.type !== before?.type;
      merged.set(name, before === undefined || other ? cluster : mergeCluster(before, cluster));
    }
  }
  const clusters = new Map([...merged].map(([name, cluster]) => [name, finishCluster(name, cluster)]));
  const named = layers.findLast((layer) => layer.default !== undefined);
  const chosen = named?.default ?? "local";
  if (named !== undefined && !clusters.has(chosen)) {
    badValue(named.source, ["default"], `there is no cluster '${chosen}'${suggest(chosen, clusters.keys())}`);
  }
  const limit = <K extends "tasksPerRun" | "losses">(key: K): number | undefined =>
    layers.findLast((layer) => layer[key] !== undefined)?.[key];
  return {
    default: chosen,
    clusters,
    limits: { tasksPerRun: limit("tasksPerRun") ?? 10_000_000, losses: limit("losses") ?? 5 },
    files: layers.map((layer) => layer.file),
  };
};

const NOWHERE: Source = { locate: () => ({ where: "built-in", key: "clusters" }) };

const mergeCluster = (weak: ClusterLayer, strong: ClusterLayer): ClusterLayer => {
  const queues = new Map(weak.queues);
  for (const [name, queue] of strong.queues) queues.set(name, mergeQueue(queues.get(name), queue));
  return { ...weak, ...strong, resources: { ...weak.resources, ...strong.resources }, queues };
};

const mergeQueue = (weak: QueueLayer | undefined, strong: QueueLayer): QueueLayer => ({
  ...weak,
  ...strong,
  resources: { ...weak?.resources, ...strong.resources },
  fleet: { ...weak?.fleet, ...strong.fleet },
});

/** A queue with what its templates give it; a template may have one itself, but never in a circle. */
const withTemplates = (name: string, queues: ReadonlyMap<string, QueueLayer>): QueueLayer => {
  const chain = [name];
  let queue = queues.get(name)!;
  while (queue.template !== undefined) {
    const { template, source, path } = queue;
    const at: Path = [...path, "template"];
    const base = queues.get(template);
    if (base === undefined) {
      const others = [...queues.keys()].filter((key) => key !== name);
      return badValue(source, at, `no queue of this cluster is named '${template}'${suggest(template, others)}`);
    }
    if (chain.includes(template)) badValue(source, at, `templates form a circle: ${[...chain, template].join(" → ")}`);
    chain.push(template);
    const { template: _template, ...own } = queue;
    queue = { ...mergeQueue(base, own), source: base.source, path: base.path };
  }
  return { ...queue, source: queues.get(name)!.source, path: queues.get(name)!.path };
};

const finishQueue = (name: string, layer: QueueLayer, defaults: FleetConfig): QueueConfig => {
  const { source, path, template: _template, fleet, signal, "signal-before": signalBefore, ...rest } = layer;
  return {
    nodes: 1,
    options: [],
    prologue: [],
    ...rest,
    resources: rest.resources ?? {},
    name,
    fleet: finishFleet(source, [...path, "fleet"], defaults, fleet),
    signal: signal ?? "SIGTERM",
    signalBefore: signalBefore ?? 30,
  };
};

const finishCluster = (name: string, cluster: ClusterLayer): ClusterConfig => {
  const { source, path, type, queues: layers, ...rest } = cluster;
  if (type === undefined) {
    return badValue(source, path, "has no type", "Add type: slurm, pbs, sge, oar, local or simulated.");
  }
  if (name === "local" && type !== "local") {
    badValue(
      source,
      [...path, "type"],
      "the cluster named local is always of type local",
      "Give this cluster another name.",
    );
  }
  const fleet = type === "local" ? LOCAL_FLEET : FLEET;
  const queues = new Map(
    [...layers.keys()].map((queue) => [queue, finishQueue(queue, withTemplates(queue, layers), fleet)]),
  );
  if (queues.size === 0) queues.set(DEFAULT_QUEUE, finishQueue(DEFAULT_QUEUE, { source, path }, fleet));
  return {
    prologue: [],
    grace: 5,
    pin: false,
    executor: "process",
    ...rest,
    resources: rest.resources ?? {},
    name,
    type,
    queues,
  };
};

/** The cluster a task names, or the default one; `no-such-cluster` with the nearest name otherwise. */
export const clusterNamed = (config: ClustersConfig, name = config.default): ClusterConfig => {
  const found = config.clusters.get(name);
  if (found === undefined) {
    throw new SlipwayError("no-such-cluster", { name, suggestion: suggest(name, config.clusters.keys()) });
  }
  return found;
};
