import type { Resources } from "../core/resources.ts";
import type { ClusterInput, ClustersInput, QueueInput } from "./clusters-schema.ts";
import { type FleetLayer, readFleet, readSignal } from "./fleet-keys.ts";
import { reader } from "./layer-reader.ts";
import { badValue, type Path, type Source } from "./source.ts";
import { checkName, checkText } from "./text-rules.ts";

/** One clusters.yaml with its values worked out, each still knowing where it was written. */
export interface Layer {
  readonly file: string;
  readonly source: Source;
  readonly default?: string;
  readonly clusters: ReadonlyMap<string, ClusterLayer>;
  readonly tasksPerRun?: number;
  readonly losses?: number;
}

interface Written {
  readonly source: Source;
  readonly path: Path;
}

export interface ClusterLayer extends Written {
  readonly type?: NonNullable<ClusterInput["type"]>;
  readonly launcher?: string;
  readonly queues: ReadonlyMap<string, QueueLayer>;
  readonly prologue?: readonly string[];
  readonly resources?: Resources;
  readonly scratch?: string;
  readonly grace?: number;
  readonly pin?: boolean;
  readonly executor?: "process" | "null";
}

export interface QueueLayer extends Written {
  readonly template?: string;
  readonly partition?: string;
  readonly account?: string;
  readonly qos?: string;
  readonly constraint?: string;
  readonly nodes?: number;
  readonly cores?: number;
  readonly memory?: number;
  readonly gpus?: number;
  readonly tmp?: number;
  readonly resources?: Resources;
  readonly walltime?: number;
  readonly launcher?: string;
  readonly options?: readonly string[];
  readonly prologue?: readonly string[];
  readonly fleet?: FleetLayer;
  readonly signal?: string;
  readonly "signal-before"?: number;
}

const MAX_TASKS = 1_000_000_000;
const MAX_NODES = 1_000_000;

const readQueue = (source: Source, path: Path, input: QueueInput): QueueLayer => {
  const { out, key, name, whole, seconds, bytes, lines, resources } = reader(source, path, input);
  for (const text of ["template", "partition", "account", "qos", "constraint", "launcher"] as const) key(text, name);
  key("nodes", whole(1, MAX_NODES));
  key("cores", whole(1, MAX_NODES));
  key("gpus", whole(0, MAX_NODES));
  key("memory", bytes);
  key("tmp", bytes);
  key("walltime", (value, at) => seconds(value, at) || badValue(source, at, "must be more than 0"));
  key("resources", resources);
  key("options", lines);
  key("prologue", lines);
  key("fleet", (value, at) => readFleet(source, at, value));
  key("signal", (value, at) => readSignal(source, at, value));
  key("signal-before", seconds);
  return { ...(out as Omit<QueueLayer, keyof Written>), source, path };
};

const readCluster = (source: Source, path: Path, input: ClusterInput): ClusterLayer => {
  const { out, key, name, seconds, lines, resources } = reader(source, path, input);
  key("type", (value) => value);
  key("launcher", name);
  key("prologue", lines);
  key("resources", resources);
  key("scratch", (value, at) => checkText(source, at, value) || badValue(source, at, "is empty"));
  key("grace", seconds);
  key("pin", (value) => value);
  key("executor", (value) => value);
  const queues = new Map<string, QueueLayer>();
  for (const [queue, inner] of Object.entries(input.queues ?? {})) {
    const at = [...path, "queues", queue];
    checkName(source, at, queue);
    queues.set(queue, readQueue(source, at, inner));
  }
  return { ...(out as Omit<ClusterLayer, keyof Written | "queues">), queues, source, path };
};

/** Works a file's values out. */
export const layerOf = (input: ClustersInput, source: Source, file: string): Layer => {
  const clusters = new Map<string, ClusterLayer>();
  for (const [name, cluster] of Object.entries(input.clusters ?? {})) {
    const path = ["clusters", name];
    checkName(source, path, name);
    clusters.set(name, readCluster(source, path, cluster));
  }
  const { out, key, whole } = reader(source, ["limits"], input.limits ?? {});
  key("tasks-per-run", whole(1, MAX_TASKS));
  key("losses", whole(0, 1_000_000));
  return {
    file,
    source,
    clusters,
    ...(input.default === undefined ? {} : { default: input.default }),
    ...(out["tasks-per-run"] === undefined ? {} : { tasksPerRun: out["tasks-per-run"] as number }),
    ...(out["losses"] === undefined ? {} : { losses: out["losses"] as number }),
  };
};
