import { hostname } from "node:os";
import type { ClusterConfig, ClustersConfig } from "../config/clusters-file.ts";
import type { Resources } from "../core/resources.ts";
import type { AccountRule } from "../scheduler/scheduler.ts";
import { knownOf } from "./largest.ts";

/** What several agents share, as clusters.yaml says: this machine, and the licences of each cluster. */

/** What the machine of a local cluster has in all. */
const machineOf = ({ licences }: ClusterConfig, largest: Resources): Resources =>
  Object.fromEntries(Object.entries(knownOf(largest)).filter(([name]) => !Object.hasOwn(licences, name)));

/** `largest`: what the largest node of each usable cluster offers. */
export const accountRules = (
  { clusters }: ClustersConfig,
  largest: ReadonlyMap<string, Resources>,
  here = hostname(),
): AccountRule[] =>
  [...clusters.values()].flatMap((cluster) => {
    const { name, type, licences } = cluster;
    const machine: AccountRule = {
      cluster: name,
      machine: true,
      capacity: type === "local" ? machineOf(cluster, largest.get(name) ?? {}) : {},
      // one that somebody started elsewhere brings its own machine
      covers: ({ pilot, host }) => pilot !== 0 || host === here,
    };
    const shared: AccountRule = { cluster: name, capacity: licences, covers: () => true };
    return [machine, shared].filter(({ capacity }) => Object.keys(capacity).length > 0);
  });

/** What can never be exceeded in a cluster, by name, whatever its nodes have. */
export const capacityIn = (rules: readonly AccountRule[], cluster: string): Resources =>
  Object.assign({}, ...rules.filter((rule) => rule.cluster === cluster).map(({ capacity }) => capacity)) as Resources;
