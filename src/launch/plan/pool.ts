import type { QueueConfig } from "../../config/clusters-file.ts";
import type { SlotType } from "../../config/launch-keys.ts";
import { suggest } from "../../config/nearest.ts";
import { SlipwayError } from "../../errors.ts";
import type { Partition } from "../../managers/provider.ts";
import type { LaunchSpec } from "./launch-spec.ts";
import type { ChosenPool } from "./plan.ts";
import type { LaunchSettings } from "./settings.ts";

export interface PoolInput {
  readonly spec: Pick<LaunchSpec, "resourcePool" | "slots" | "slotType">;
  readonly settings: LaunchSettings;
  readonly queues: ReadonlyMap<string, QueueConfig>;
  readonly partitions: readonly Partition[];
}

/**
 * Where a launch goes. A name means a queue of clusters.yaml, or else a partition of the manager. Without a name, the
 * launch goes to the cluster's default pool, or else to the manager's default partition: for compute only if that has
 * GPUs, or if slots are CPUs.
 */
export const choosePool = (input: PoolInput): ChosenPool => {
  const { spec, settings, partitions } = input;
  const auxiliary = spec.slots === 0;
  const named = spec.resourcePool ?? (auxiliary ? settings.defaultAuxPool : settings.defaultComputePool);
  if (named !== undefined) return namedPool(named, input);

  const key = auxiliary ? "default_aux_resource_pool" : "default_compute_resource_pool";
  const standard = partitions.find((partition) => partition.isDefault);
  if (standard === undefined) {
    if (partitions.length > 0)
      throw new SlipwayError("no-pool", { detail: "the cluster has no default partition", key });
    return { name: "" };
  }
  const pool: ChosenPool = { name: standard.name, partition: standard.name, facts: standard };
  const needsGpus = !auxiliary && (spec.slotType ?? declared(settings, standard.name) ?? "cuda") !== "cpu";
  // without gres the manager does not report GPUs: their absence proves nothing
  if (needsGpus && standard.gpusPerNode === 0 && settings.gresSupported) {
    throw new SlipwayError("no-pool", { detail: `the default partition ${standard.name} has no GPUs`, key });
  }
  return pool;
};

const namedPool = (name: string, { queues, partitions }: PoolInput): ChosenPool => {
  const queue = queues.get(name);
  if (queue !== undefined) {
    const facts = partitions.find((partition) =>
      queue.partition === undefined ? partition.isDefault : partition.name === queue.partition,
    );
    return {
      name,
      queue,
      ...(queue.partition === undefined ? {} : { partition: queue.partition }),
      ...(facts === undefined ? {} : { facts }),
    };
  }
  const facts = partitions.find((partition) => partition.name === name);
  if (facts === undefined && partitions.length > 0) {
    const known = [...queues.keys(), ...partitions.map((partition) => partition.name)];
    const detail = `there is no resource pool '${name}'${suggest(name, known)}`;
    throw new SlipwayError("no-pool", { detail, key: "queues" });
  }
  return { name, partition: name, ...(facts === undefined ? {} : { facts }) };
};

const declared = (settings: LaunchSettings, ...names: readonly (string | undefined)[]): SlotType | undefined => {
  const overrides = settings.partitionOverrides;
  const named = names.find((name) => name !== undefined && Object.hasOwn(overrides, name) && overrides[name]!.slotType);
  return (named === undefined ? undefined : overrides[named]!.slotType) ?? settings.slotType;
};

/**
 * What a slot is in this pool: what the launch says, or else what clusters.yaml says, or else a GPU if there are any.
 */
export const slotTypeOf = (spec: Pick<LaunchSpec, "slotType">, settings: LaunchSettings, pool: ChosenPool): SlotType =>
  spec.slotType ??
  declared(settings, pool.name, pool.partition, pool.facts?.name) ??
  ((pool.facts?.gpusPerNode ?? 0) > 0 ? "cuda" : "cpu");
