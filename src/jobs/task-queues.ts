import { join } from "node:path";
import type { ClusterConfig, ClustersConfig, QueueConfig } from "../config/clusters-file.ts";
import { fromUnits } from "../core/resources.ts";
import { timeLimitOf } from "../core/retry-set.ts";
import type { JobRequest } from "../managers/provider.ts";
import { SIMULATED_ARRAY, simulatedOptions } from "../managers/simulated/options.ts";
import { PLAIN_NAMES } from "../managers/task-job-name.ts";
import type { Fleet } from "../pilots/fleet.ts";
import { agentSettings } from "../protocol/agent-settings.ts";
import { TASK_STDERR, TASK_STDOUT, prepareTaskJob } from "./task-job-files.ts";
import { PATIENCE, type TaskQueue, type TaskStart, walltimeOf, wholeOf } from "./task-queue.ts";

/** The queues that clusters.yaml declares, as places for tasks' jobs: the same queues as those of pilots. */

/** A silent agent on this machine keeps its task this long while its process lives. */
const LOCAL_LEASE_MS = 60_000;
/** Elsewhere until its job must have ended; without any limit, for a day. */
const NO_WALLTIME_LEASE = 86_400;
/** Licences that the manager counts are asked for again after this long. */
const LICENCES_MS = 300_000;

export interface TaskQueuesOptions {
  readonly home: string;
  /** Directory of the built files, including the agent's bundle. */
  readonly bundles: string;
  readonly clusters: ClustersConfig;
  /** They share their providers with the jobs of tasks. */
  readonly fleets: readonly Fleet[];
  readonly scratchOf: (cluster: ClusterConfig) => string;
}

type Own = Pick<TaskQueue, "names" | "arrays" | "prepare" | "outputs" | "leaseMs">;

/** Each element of a simulated array is told which one it is. */
const ELEMENT = `exec "$@" --element "$${SIMULATED_ARRAY.variable}"`;

/** On this machine, also in a simulation of another: one detached process for each task. */
const prepareHere = (
  { home, bundles, scratchOf }: TaskQueuesOptions,
  cluster: ClusterConfig,
  queue: QueueConfig,
  { id, jobName, directory, shape, group, rows }: TaskStart,
): JobRequest => {
  const declared = wholeOf(shape);
  const settings = agentSettings({
    home,
    pilot: 0,
    cluster: cluster.name,
    queue: queue.name,
    scratch: scratchOf(cluster),
    declared,
    graceMs: cluster.grace * 1000,
    pin: cluster.pin,
    ...PATIENCE,
    executor: cluster.executor,
    taskJob: { id, element: 0 },
  });
  const command = [process.execPath, join(bundles, "agent-quick.cjs"), "--settings", JSON.stringify(settings)];
  if (cluster.type !== "simulated") return { name: jobName, directory, command };
  const cores = Math.max(1, Math.ceil(fromUnits("cpus", declared["cpus"] ?? 0)));
  const walltime = walltimeOf(timeLimitOf(group, rows[0]!), queue.walltime);
  const { walltime: _, ...ofQueue } = queue;
  const options = simulatedOptions({ ...ofQueue, nodes: 1, cores, ...(walltime === undefined ? {} : { walltime }) });
  const array = rows.length > 1 ? { array: rows.length } : {};
  return {
    name: jobName,
    directory,
    command: rows.length > 1 ? ["/bin/sh", "-c", ELEMENT, "sh", ...command] : command,
    options,
    ...array,
  };
};

const here = (options: TaskQueuesOptions, cluster: ClusterConfig, queue: QueueConfig): Own => ({
  names: PLAIN_NAMES,
  arrays: () => cluster.type === "simulated",
  leaseMs: () => LOCAL_LEASE_MS,
  outputs: ["agent.log"],
  prepare: async (job) => prepareHere(options, cluster, queue, job),
});

/** For a manager that takes scripts; undefined where it has no words for tasks. */
const managed = (
  { home }: TaskQueuesOptions,
  cluster: ClusterConfig,
  queue: QueueConfig,
  fleet: Fleet,
): Own | undefined => {
  const { batch } = cluster.manager;
  const dialect = batch?.task;
  if (batch === undefined || dialect === undefined || fleet.bundle === undefined) return undefined;
  const { provider, bundle } = fleet;
  let licences: ReadonlySet<string> = new Set();
  let askedAt = -Infinity;
  const counted = async (): Promise<ReadonlySet<string>> => {
    if (provider.licences === undefined || performance.now() - askedAt < LICENCES_MS) return licences;
    licences = new Set(await provider.licences());
    askedAt = performance.now();
    return licences;
  };
  return {
    names: dialect,
    arrays: ({ spec }) =>
      dialect.array !== undefined && (dialect.array.allows?.({ keys: spec.job?.keys ?? {}, own: queue.own }) ?? true),
    leaseMs: (timeLimit) => (walltimeOf(timeLimit, queue.walltime) ?? NO_WALLTIME_LEASE) * 1000,
    outputs: [TASK_STDOUT, TASK_STDERR],
    prepare: async ({ id, jobName, directory, shape, group, rows, nice }) =>
      prepareTaskJob(
        { home, cluster, queue, batch, dialect, bundle, licences: await counted() },
        {
          id,
          jobName,
          directory,
          resources: shape.resources,
          ranks: shape.ranks,
          keys: group.spec.job?.keys ?? {},
          timeLimit: timeLimitOf(group, rows[0]!),
          elements: rows.length,
          nice,
        },
      ),
  };
};

export const createTaskQueues = (options: TaskQueuesOptions): TaskQueue[] =>
  options.fleets.flatMap((fleet): TaskQueue[] => {
    const cluster = options.clusters.clusters.get(fleet.cluster);
    const queue = cluster?.queues.get(fleet.queue);
    if (cluster === undefined || queue === undefined) return [];
    const own =
      cluster.manager.isHere === true ? here(options, cluster, queue) : managed(options, cluster, queue, fleet);
    if (own === undefined) return [];
    return [
      {
        ...own,
        cluster: cluster.name,
        queue: queue.name,
        manager: cluster.manager,
        provider: fleet.provider,
        policy: {
          mostQueued: cluster.nMaxQueuedJobs,
          repoKey: cluster.repoKey,
          useNice: (cluster.own as { readonly useNice?: boolean } | undefined)?.useNice === true,
        },
        accounts: cluster.type === "local" || Object.keys(cluster.licences).length > 0,
        ...(queue.logDirectory === undefined ? {} : { logDirectory: queue.logDirectory }),
        cleanup: queue.cleanup,
      },
    ];
  });
