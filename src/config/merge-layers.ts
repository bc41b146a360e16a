import type { ClusterLayer, Layer, QueueLayer } from "./clusters-layer.ts";
import type { ReadKeys } from "./key-table.ts";
import { suggest } from "./nearest.ts";
import { overlay } from "./queue-job.ts";
import { badValue, type Path, type Source } from "./source.ts";

/** Puts layers of configuration together, weakest first: clusters and queues by name, their keys one by one. */

/** The queue of a cluster that declares none. */
export const DEFAULT_QUEUE = "default";

export const NOTHING: ReadKeys = { values: {}, places: {} };
const NOWHERE: Source = { locate: () => ({ where: "built-in", key: "clusters" }) };
const LOCAL: ClusterLayer = {
  source: NOWHERE,
  path: [],
  type: "local",
  own: NOTHING,
  shared: NOTHING,
  queues: new Map(),
};

const merge = (layers: readonly Layer[]): Map<string, ClusterLayer> => {
  const merged = new Map([["local", LOCAL]]);
  /** Clusters of which only overrides were seen: what declares them comes with a stronger layer. */
  const undeclared = new Set<string>();
  for (const { clusters, overrides = false } of layers) {
    for (const [name, cluster] of clusters) {
      const before = merged.get(name);
      // Another type makes another cluster: nothing of the weaker one applies.
      const other = cluster.type !== undefined && cluster.type !== before?.type && !undeclared.has(name);
      merged.set(name, before === undefined || other ? cluster : mergeCluster(before, cluster));
      if (!overrides) undeclared.delete(name);
      else if (before === undefined) undeclared.add(name);
    }
  }
  return merged;
};

/** Overrides of a cluster that is not declared here are meant for another machine; a queue that is not is a mistake. */
const overridesOf = (layer: Layer, declared: ReadonlyMap<string, ClusterLayer>): Layer => {
  const known = [...layer.clusters].filter(([name]) => declared.has(name));
  for (const [name, { queues, source }] of known) {
    const there = [...declared.get(name)!.queues.keys()];
    if (there.length === 0) there.push(DEFAULT_QUEUE);
    for (const [queue, { path }] of queues)
      if (!there.includes(queue))
        badValue(
          source,
          path,
          `the cluster '${name}' has no queue '${queue}'${suggest(queue, there)}`,
          `Only queues that clusters.yaml declares can be overridden: ${there.slice(0, 20).join(", ")}.`,
        );
  }
  return { ...layer, clusters: new Map(known) };
};

export const mergeLayers = (layers: readonly Layer[]): ReadonlyMap<string, ClusterLayer> => {
  const declared = merge(layers.filter(({ overrides }) => overrides !== true));
  return merge(layers.map((layer) => (layer.overrides === true ? overridesOf(layer, declared) : layer)));
};

const mergeCluster = (weak: ClusterLayer, strong: ClusterLayer): ClusterLayer => {
  const queues = new Map(weak.queues);
  for (const [name, queue] of strong.queues) queues.set(name, mergeQueue(queues.get(name), queue));
  return {
    ...weak,
    ...strong,
    own: overlay(weak.own, strong.own),
    shared: overlay(weak.shared, strong.shared),
    fleet: { ...weak.fleet, ...strong.fleet },
    queues,
  };
};

const mergeQueue = (weak: QueueLayer | undefined, strong: QueueLayer): QueueLayer => ({
  ...weak,
  ...strong,
  ...overlay(weak, strong),
  fleet: { ...weak?.fleet, ...strong.fleet },
});

/** A queue with what its templates give it; a template may have one itself, but never in a cycle. */
export const withTemplates = (name: string, queues: ReadonlyMap<string, QueueLayer>): QueueLayer => {
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
    if (chain.includes(template)) badValue(source, at, `templates form a cycle: ${[...chain, template].join(" → ")}`);
    chain.push(template);
    const { template: _template, ...own } = queue;
    queue = { ...mergeQueue(base, own), source: base.source, path: base.path };
  }
  return { ...queue, source: queues.get(name)!.source, path: queues.get(name)!.path };
};
