import type { ClustersConfig } from "../config/clusters-file.ts";
import type { Resources } from "../core/resources.ts";
import { largestOf } from "../pilots/largest.ts";

/** What the largest node of each cluster offers, as far as clusters.yaml says; `here` adds what this machine has. */
export const knownNodes = (
  { clusters }: ClustersConfig,
  here: (declared: Resources) => Resources,
): Map<string, Resources> => {
  const nodes = new Map<string, Resources>();
  for (const cluster of clusters.values()) {
    const { name, type, licences } = cluster;
    if (type === "local") nodes.set(name, here({ ...cluster.resources, ...licences }));
    else nodes.set(name, { ...largestOf(cluster), ...licences });
  }
  return nodes;
};
