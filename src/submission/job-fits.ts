import type { QueueConfig } from "../config/clusters-file.ts";
import { type Resources, amountOf, toUnits } from "../core/resources.ts";
import type { RankSpec } from "../core/spec.ts";
import { concurrency } from "../scheduler/capacity.ts";

/**
 * Whether some node of a manager could hold the job of a task, as far as the manager has described itself. Pure. What
 * it did not describe is left to the manager itself: nothing is refused for an amount that nobody knows.
 */

/** What a manager says of its nodes. */
export interface NodeSizes {
  /** The most of each that some node has. */
  readonly largest: Resources;
  readonly partitions?: readonly PartitionSize[];
}

/** A partition, or a queue; amounts are those of its largest node, 0 when unknown. */
export interface PartitionSize {
  readonly name: string;
  readonly nodes: number;
  readonly cpusPerNode: number;
  readonly memoryPerNode: number;
  readonly gpusPerNode: number;
}

export interface JobLack {
  readonly name: string;
  readonly asked: number;
  readonly has: number;
  /** Where it was looked for: a partition, or undefined for the whole cluster. */
  readonly partition?: string;
}

export interface JobSize {
  /** Units; with ranks, those of each. */
  readonly resources: Resources;
  readonly ranks?: RankSpec | undefined;
  /** The partitions that its job may go to, as its manager is told: `a` or `a,b`; undefined: any. */
  readonly partition?: string | undefined;
}

const NAMES_PARTITION = /^(?:-p|--partition)/;

/** Where the job of a task goes: what the task says, else its queue; undefined where an option may say otherwise. */
export const partitionOf = (
  keys: Readonly<Record<string, string>>,
  queue: Pick<QueueConfig, "partition" | "options"> | undefined,
): string | undefined =>
  keys["partition"] ??
  (queue?.options.some((option) => NAMES_PARTITION.test(option)) === true ? undefined : queue?.partition);

/** The most of each that some node has; what is 0 is not known. */
const nodeOf = (partitions: readonly PartitionSize[]): Resources => {
  const most = (of: (partition: PartitionSize) => number): number => {
    const all = partitions.map(of);
    return all.includes(0) ? 0 : Math.max(...all);
  };
  return {
    cpus: toUnits(
      "cpus",
      most(({ cpusPerNode }) => cpusPerNode),
    ),
    mem: most(({ memoryPerNode }) => memoryPerNode),
    gpus: toUnits(
      "gpus",
      most(({ gpusPerNode }) => gpusPerNode),
    ),
  };
};

const placesOf = ({ partitions = [] }: NodeSizes, named: string | undefined): readonly PartitionSize[] => {
  const names = named?.split(",").map((name) => name.trim()) ?? [];
  const found = partitions.filter(({ name }) => names.includes(name));
  return found.length === names.length ? found : [];
};

export const jobShortage = (description: NodeSizes, { resources, ranks, partition }: JobSize): JobLack | undefined => {
  const places = placesOf(description, partition);
  const node = places.length > 0 ? nodeOf(places) : description.largest;
  const where = places.length > 0 ? { partition: partition! } : {};
  const known = Object.fromEntries(Object.entries(resources).filter(([name]) => amountOf(node, name) > 0));
  for (const [name, asked] of Object.entries(known)) {
    const has = amountOf(node, name);
    if (asked > has) return { name, asked, has, ...where };
  }
  if (ranks?.nodes === undefined) return undefined;
  const nodes = places.reduce((sum, each) => sum + each.nodes, 0);
  if (nodes > 0 && ranks.nodes > nodes) return { name: "nodes", asked: ranks.nodes, has: nodes, ...where };
  const most = concurrency(node, known) * ranks.nodes;
  return ranks.count > most ? { name: "ranks", asked: ranks.count, has: most, ...where } : undefined;
};
