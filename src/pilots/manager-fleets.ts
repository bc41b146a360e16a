import { join } from "node:path";
import type { ClusterConfig } from "../config/clusters-file.ts";
import { createProvider } from "../managers/registry.ts";
import { type Fleet, ofQueue } from "./fleet.ts";
import { declaredBy, preparePilot, STDERR, STDOUT } from "./pilot-job.ts";

/** The fleets of a cluster with a workload manager: one provider for all its queues. */

/** Rule 5: a silent agent keeps its tasks until its pilot must have ended; without a walltime, for a day. */
const NO_WALLTIME_LEASE = 86_400;

export interface ManagerFleetsOptions {
  readonly home: string;
  readonly bundle: () => Promise<string>;
}

export const managerFleets = ({ home, bundle }: ManagerFleetsOptions, cluster: ClusterConfig): Fleet[] => {
  const { manager } = cluster;
  const { batch } = manager;
  if (batch === undefined) return [];
  const provider = createProvider(cluster);
  return [...cluster.queues.values()].map((queue): Fleet => {
    const declared = { ...declaredBy(queue), ...cluster.licences };
    const { logDirectory } = queue;
    return {
      ...ofQueue(queue),
      cleanup: queue.cleanup,
      ...(queue.jobNamePrefix === undefined ? {} : { jobNamePrefix: queue.jobNamePrefix }),
      cluster: cluster.name,
      queue: queue.name,
      manager,
      provider,
      policy: queue.fleet,
      // without a number of cores nothing is certain before an agent has reported it
      offer: declared["cpus"] === undefined ? undefined : declared,
      leaseMs: (queue.walltime ?? NO_WALLTIME_LEASE) * 1000,
      outputs: () => [STDOUT, STDERR],
      bundle,
      prepare: (pilot) => preparePilot({ home, cluster, queue, batch, bundle }, pilot),
      ...(logDirectory === undefined ? {} : { directoryOf: (jobName: string) => join(logDirectory, jobName) }),
    };
  });
};
