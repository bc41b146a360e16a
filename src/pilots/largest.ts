import type { ClusterConfig, QueueConfig } from "../config/clusters-file.ts";
import { MAX_BYTES, MAX_CPUS, MAX_GPUS } from "../core/quantities.ts";
import { toUnits, type Resources } from "../core/resources.ts";
import { declaredBy } from "./pilot-job.ts";

/**
 * The most that a task can hope for on a node of a cluster, as far as its queues say. What a queue leaves to its
 * manager has no bound here: an agent reports later what there is.
 */

const UNBOUNDED: Resources = {
  cpus: toUnits("cpus", MAX_CPUS),
  mem: MAX_BYTES,
  tmp: MAX_BYTES,
  gpus: toUnits("gpus", MAX_GPUS),
};

/** A queue may ask for GPUs in other ways than with `gpus`. */
const mayHaveGpus = ({ gpus, own, options }: QueueConfig): boolean =>
  gpus === undefined && (options.length > 0 || /gpu/i.test(JSON.stringify(own)));

const boundOf = (queue: QueueConfig): Resources => {
  const { gpus, ...always } = UNBOUNDED;
  return { ...always, ...(mayHaveGpus(queue) ? { gpus: gpus! } : {}), ...declaredBy(queue) };
};

export const largestOf = (cluster: ClusterConfig): Resources => {
  const largest: Record<string, number> = {};
  for (const queue of cluster.queues.values())
    for (const [name, units] of Object.entries(boundOf(queue)))
      largest[name] = Math.max(Object.hasOwn(largest, name) ? largest[name]! : 0, units);
  return largest;
};

/** Only what is known, for people. */
export const knownOf = (resources: Resources): Resources =>
  Object.fromEntries(Object.entries(resources).filter(([name, units]) => UNBOUNDED[name] !== units));
