import { type ClusterConfig, type ClustersConfig, type QueueConfig } from "../config/clusters-file.ts";
import { suggest } from "../config/nearest.ts";
import { formatDuration } from "../core/quantities.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import type { ClusterDescription, Partition } from "../managers/provider.ts";
import { freshSeconds } from "../pilots/supply.ts";

/**
 * Whether the queues that a group may go to could ever run it, by clusters.yaml and by what the manager last said of
 * itself. What can be judged so is refused at submit, and nobody waits for a manager.
 */

export interface PlacesOptions {
  readonly clusters: ClustersConfig;
  /** What its manager last said, if that is not too old. */
  readonly described: (cluster: string) => ClusterDescription | undefined;
  /** Whether pilots or agents of a queue are there, whoever started them. */
  readonly isServed: (cluster: string, queue: string) => boolean;
}

export interface Places {
  /** Refuses a run with a group that no queue could run. */
  check(spec: RunSpec): void;
}

interface Problem {
  readonly detail: string;
  readonly remedy: string;
}

/** What a job asks its manager for by name. */
interface Names {
  readonly partition?: string | undefined;
  readonly account?: string | undefined;
  readonly qos?: string | undefined;
}

const listed = (names: readonly string[]): string =>
  names.length > 12 ? `${names.slice(0, 12).join(", ")} and ${names.length - 12} more` : names.join(", ");

/** `a,b`; a queue of PBS may name its server, a queue of Grid Engine its host. */
const partitionNames = (text: string | undefined): string[] =>
  (text?.split(",") ?? []).map((name) => name.split("@")[0]!.trim()).filter((name) => name !== "");

/** A name that the manager does not have. */
export const unknownName = (
  { manager }: Pick<ClusterConfig, "manager">,
  names: Names,
  { partitions = [], accounts, qos }: ClusterDescription,
): Problem | undefined => {
  const missing = (what: string, key: string, given: readonly string[], known: readonly string[]) => {
    const there = new Set(known.map((name) => name.toLowerCase()));
    const unknown = given.find((name) => !there.has(name.toLowerCase()));
    if (unknown === undefined) return undefined;
    return {
      detail: `${manager.title} has no ${what} '${unknown}'${key === "partition" ? "" : " for this user"}${suggest(unknown, known)}`,
      remedy: `Set ${key} to one of ${listed(known)}.`,
    };
  };
  const { partition: word = "partition" } = manager.batch ?? {};
  return (
    (partitions.length === 0
      ? undefined
      : missing(
          word,
          "partition",
          partitionNames(names.partition),
          partitions.map(({ name }) => name),
        )) ??
    (accounts === undefined || names.account === undefined
      ? undefined
      : missing("account", "account", [names.account], accounts)) ??
    (qos === undefined || names.qos === undefined ? undefined : missing("QOS", "qos", [names.qos], qos))
  );
};

/** Seconds that a partition lets a pilot have, where its queue does not say; a QOS may allow more. */
const longestOf = (queue: QueueConfig, partitions: readonly Partition[]): number => {
  if (queue.qos !== undefined) return Infinity;
  const names = partitionNames(queue.partition);
  const meant = partitions.filter(({ name, isDefault }) => (names.length === 0 ? isDefault : names.includes(name)));
  return meant.length === 0 ? Infinity : Math.max(...meant.map(({ maxWalltime }) => maxWalltime ?? Infinity));
};

/** The time-request is longer than a pilot of this queue could give. */
const tooLong = (
  timeRequest: number | undefined,
  queue: QueueConfig,
  description: ClusterDescription | undefined,
): Problem | undefined => {
  const most =
    queue.walltime === undefined
      ? longestOf(queue, description?.partitions ?? [])
      : freshSeconds({ ...queue, policy: queue.fleet });
  if (timeRequest === undefined || timeRequest <= most) return undefined;
  const whole =
    queue.walltime === undefined
      ? "which is what its partition allows"
      : `out of its walltime of ${formatDuration(queue.walltime)}`;
  return {
    detail: `a time-request of ${formatDuration(timeRequest)} is longer than the ${formatDuration(most)} that a task has there, ${whole}`,
    remedy: "Ask for less time, or give a queue a longer walltime in clusters.yaml.",
  };
};

/** What keeps the tasks of a group from running in one queue for ever, as far as is known. */
const problemIn = (
  { described, isServed }: PlacesOptions,
  cluster: ClusterConfig,
  queue: QueueConfig,
  { job, timeRequest }: GroupSpec,
): Problem | undefined => {
  const description = cluster.manager.batch === undefined ? undefined : described(cluster.name);
  const names: Names = {
    partition: job?.keys["partition"] ?? job?.keys["partition0"] ?? queue.partition,
    account: queue.account,
    qos: job?.keys["qos"] ?? job?.keys["qos0"] ?? queue.qos,
  };
  const unknown = description === undefined ? undefined : unknownName(cluster, names, description);
  if (unknown !== undefined || job !== undefined) return unknown;
  // pilots may have been started by hand; on this machine max: 0 means that agents come by hand, also after the run
  if (queue.fleet.max === 0 && cluster.type !== "local" && !isServed(cluster.name, queue.name))
    return {
      detail: "its fleet has max: 0, and no pilot of it is there",
      remedy:
        "Raise max of its fleet in clusters.yaml, start a pilot with `slipway pilots add`, or name another queue.",
    };
  return tooLong(timeRequest, queue, description);
};

/** All that places depend on. */
const asksAlike = (one: GroupSpec, other: GroupSpec): boolean =>
  one.redirect === other.redirect &&
  one.cluster === other.cluster &&
  one.queue === other.queue &&
  one.job === other.job &&
  one.timeRequest === other.timeRequest;

export const createPlaces = (options: PlacesOptions): Places => {
  const checkGroup = (group: GroupSpec): void => {
    // by its user's own word
    if (group.redirect !== undefined) return;
    const cluster = options.clusters.clusters.get(group.cluster ?? options.clusters.default);
    // a name that does not exist is somebody else's to refuse
    if (cluster === undefined) return;
    const problems: { readonly queue: string; readonly problem: Problem }[] = [];
    for (const queue of cluster.queues.values()) {
      if (group.queue !== undefined && group.queue !== queue.name) continue;
      const problem = problemIn(options, cluster, queue, group);
      if (problem === undefined) return;
      problems.push({ queue: queue.name, problem });
    }
    if (problems.length === 0) return;
    const [first] = problems;
    throw new SlipwayError("no-usable-queue", {
      task: group.name,
      cluster: cluster.name,
      queues: problems.map(({ queue }) => queue),
      detail: problems
        .slice(0, 3)
        .map(({ queue, problem }) => `queue ${queue}: ${problem.detail}`)
        .join("; "),
      remedy: first!.problem.remedy,
    });
  };
  return {
    check: ({ groups }) => {
      let before: GroupSpec | undefined;
      for (const group of groups) {
        // a graph has thousands of tasks for one place, and what holds for one of them holds for the next
        if (before === undefined || !asksAlike(group, before)) checkGroup(group);
        before = group;
      }
    },
  };
};
