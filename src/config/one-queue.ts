import { SlipwayError } from "../errors.ts";
import { clusterNamed, combineClusters, type ClusterConfig, type QueueConfig } from "./clusters-file.ts";
import type { Written } from "./key-table.ts";
import type { LoadedLayers } from "./load-clusters.ts";
import { mergeLayers, NOTHING, withTemplates } from "./merge-layers.ts";
import { suggest } from "./nearest.ts";
import { overlay } from "./queue-job.ts";

/** One queue of one cluster, out of all layers, as a clusters.yaml of its own could say it. */
export interface OneQueue {
  readonly cluster: ClusterConfig;
  readonly queue: QueueConfig;
  /** Files of managers and launchers from outside. */
  readonly modules: readonly string[];
  /** Keys of the cluster, without its queues; as they were written. */
  readonly own: Readonly<Record<string, unknown>>;
  /** Keys of the queue, with those of its templates and of the cluster. */
  readonly job: Readonly<Record<string, unknown>>;
}

/** Values as they were written; those of maps that layers put together name by name, as a map again. */
const writtenAt = (places: Readonly<Record<string, Written>>): Record<string, unknown> => {
  const out: Record<string, unknown> = {};
  const valueOf = ({ source, path }: Written): unknown => source.written?.(path);
  const inner = Object.entries(places).filter(([key]) => key.includes("."));
  const maps = new Set(inner.map(([key]) => key.slice(0, key.indexOf("."))));
  for (const [key, place] of Object.entries(places))
    if (!key.includes(".") && !maps.has(key)) out[key] = valueOf(place);
  for (const [key, place] of inner) {
    const map = key.slice(0, key.indexOf("."));
    out[map] = { ...(out[map] as object | undefined), [key.slice(map.length + 1)]: valueOf(place) };
  }
  return out;
};

const queueOf = ({ name, queues }: ClusterConfig, wanted: string | undefined): QueueConfig => {
  const found = wanted === undefined ? [...queues.values()][0] : queues.get(wanted);
  if (found !== undefined) return found;
  const names = [...queues.keys()];
  throw new SlipwayError("usage", {
    detail: `the cluster '${name}' has no queue '${wanted}'${suggest(wanted!, names)}; it has ${names.slice(0, 20).join(", ")}`,
  });
};

/** Without a name: the default cluster, and its first queue. */
export const oneQueue = ({ layers, keys }: LoadedLayers, cluster?: string, queue?: string): OneQueue => {
  const chosen = clusterNamed(combineClusters(layers, keys), cluster);
  const found = queueOf(chosen, queue);
  const merged = mergeLayers(layers).get(chosen.name)!;
  const layer = merged.queues.size === 0 ? NOTHING : withTemplates(found.name, merged.queues);
  const modules = layers
    .filter(({ overrides }) => overrides !== true)
    .flatMap(({ source }) => (source.written?.(["modules"]) ?? []) as string[]);
  return {
    cluster: chosen,
    queue: found,
    modules: [...new Set(modules)],
    own: { ...writtenAt(merged.own.places), type: chosen.type },
    job: writtenAt(overlay(merged.shared, layer).places),
  };
};
