import { readFileSync } from "node:fs";
import type { ClustersConfig } from "../config/clusters-file.ts";

/** How many files this server may open, and how many it could need if all its fleets were at their largest. */
export interface OpenFiles {
  readonly limit: number;
  readonly wanted: number;
}

/** Besides agents: the journal, the archive, output that is read, people who look, commands of managers. */
const OWN = 256;

/** Each agent is a connection, and each node of a pilot has an agent. */
export const filesWanted = (clusters: Pick<ClustersConfig, "clusters">): number => {
  let agents = 0;
  for (const { queues } of clusters.clusters.values())
    for (const { fleet, nodes } of queues.values()) agents += fleet.max * nodes;
  return OWN + agents;
};

/** The soft limit, which Node has raised to the hard one; Infinity if there is none. */
export const parseFileLimit = (limits: string): number | undefined => {
  const found = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  return found === undefined ? undefined : found === "unlimited" ? Infinity : Number(found);
};

/** Undefined where the system does not say. */
export const openFilesFor = (clusters: Pick<ClustersConfig, "clusters">): OpenFiles | undefined => {
  try {
    const limit = parseFileLimit(readFileSync("/proc/self/limits", "latin1"));
    return limit === undefined || limit === Infinity ? undefined : { limit, wanted: filesWanted(clusters) };
  } catch {
    return undefined; // no /proc
  }
};
