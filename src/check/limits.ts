import type { CheckView } from "../api/schemas.ts";
import type { QueueConfig } from "../config/clusters-file.ts";
import { suggest } from "../config/nearest.ts";
import { formatDuration, formatSize } from "../core/quantities.ts";
import type { Partition } from "../managers/provider.ts";
import type { Batch } from "../managers/manager.ts";

/** Compares a queue with the partitions its manager describes: do they exist, take jobs, and have room for a pilot? */

type Check = CheckView["checks"][number];

const check = (queue: QueueConfig, what: string, ok: boolean, detail: string, remedy: string | null = null): Check => ({
  what,
  queue: queue.name,
  ok,
  detail,
  remedy: ok ? null : remedy,
});

interface Limit {
  readonly key: string;
  readonly asked: number | undefined;
  /** 0 or undefined: unknown, or no limit. */
  readonly most: number | undefined;
  readonly show: (value: number) => string;
}

const limitsOf = (queue: QueueConfig, partitions: readonly Partition[]): Limit[] => {
  const most = (of: (partition: Partition) => number): number => Math.max(...partitions.map(of));
  // one partition without a limit is enough
  const times = partitions.map(({ maxWalltime }) => maxWalltime ?? Infinity);
  return [
    { key: "nodes", asked: queue.nodes, most: most(({ nodes }) => nodes), show: String },
    { key: "cores", asked: queue.cores, most: most(({ cpusPerNode }) => cpusPerNode), show: String },
    { key: "memory", asked: queue.memory, most: most(({ memoryPerNode }) => memoryPerNode), show: formatSize },
    {
      key: "gpus",
      asked: queue.gpus === 0 ? undefined : queue.gpus,
      // zero GPUs count as a limit here: where cores are known, devices are too
      most: most(({ gpusPerNode, cpusPerNode }) => (cpusPerNode > 0 && gpusPerNode === 0 ? -1 : gpusPerNode)),
      show: (value) => String(Math.max(0, value)),
    },
    { key: "walltime", asked: queue.walltime, most: Math.max(...times), show: formatDuration },
  ];
};

const limitCheck = (queue: QueueConfig, partitions: readonly Partition[]): Check => {
  const where = partitions.map(({ name }) => name).join(", ");
  const limits = limitsOf(queue, partitions);
  const over = limits.filter(
    ({ asked, most }) => asked !== undefined && most !== undefined && most !== 0 && most !== Infinity && asked > most,
  );
  if (over.length === 0) {
    const asked = limits.filter((limit) => limit.asked !== undefined);
    return check(queue, "limits", true, asked.map((limit) => `${limit.key} ${limit.show(limit.asked!)}`).join(", "));
  }
  const detail = over.map(
    ({ key, asked, most, show }) => `${key} ${show(asked!)} is more than the ${show(most!)} of ${where}`,
  );
  return check(
    queue,
    "limits",
    false,
    detail.join("; "),
    `Lower ${over.map(({ key }) => key).join(" and ")} in clusters.yaml.`,
  );
};

export const limitChecks = (
  { partition: word, choosesPartition }: Batch,
  title: string,
  queue: QueueConfig,
  partitions: readonly Partition[] | undefined,
): Check[] => {
  // some managers do not show their queues to users: the test submission will tell
  if (partitions === undefined || partitions.length === 0) return [];
  const byName = new Map(partitions.map((partition) => [partition.name, partition]));
  const wanted = queue.partition?.split(",") ?? [];
  if (wanted.length === 0) {
    const chosen = partitions.find(({ isDefault }) => isDefault);
    if (chosen === undefined)
      return [
        check(
          queue,
          word,
          choosesPartition,
          `none is named, and ${title} has no default`,
          `Add partition: one of ${[...byName.keys()].join(", ")}.`,
        ),
      ];
    return [
      check(
        queue,
        word,
        chosen.isUp,
        `${chosen.name}, the default${chosen.isUp ? "" : ", is not accepting jobs"}`,
        `Name another ${word}, or wait until it is up.`,
      ),
      limitCheck(queue, [chosen]),
    ];
  }
  const unknown = wanted.filter((name) => !byName.has(name.split("@")[0]!));
  if (unknown.length > 0)
    return [
      check(
        queue,
        word,
        false,
        `there is no ${word} '${unknown[0]}'${suggest(unknown[0]!, byName.keys())}`,
        `Set partition to one of ${[...byName.keys()].join(", ")}.`,
      ),
    ];
  const named = wanted.map((name) => byName.get(name.split("@")[0]!)!);
  const up = named.some(({ isUp }) => isUp);
  return [
    check(
      queue,
      word,
      up,
      `${wanted.join(", ")}${up ? "" : " is not accepting jobs"}`,
      `Name another ${word}, or wait until it is up.`,
    ),
    limitCheck(queue, named),
  ];
};
