import { join } from "node:path";
import type { ClusterConfig, ClustersConfig } from "../../config/clusters-file.ts";
import type { Resources } from "../../core/resources.ts";
import { createLocalProvider } from "../../providers/local.ts";
import type { Fleet } from "./fleet.ts";
import { simulatedFleets } from "./simulated-fleets.ts";

/** The fleets that clusters.yaml declares. */

/** A silent local agent keeps its tasks this long while its process lives. */
const LOCAL_LEASE_MS = 60_000;
/** An idle local agent waits this long for a server that has gone. */
const LOCAL_PATIENCE_MS = 120_000;

export interface FleetsOptions {
  readonly home: string;
  /** Directory of the built files: the agent's bundle lies there. */
  readonly bundles: string;
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  readonly scratchOf: (cluster: ClusterConfig) => string;
}

const localFleets = (options: FleetsOptions, cluster: ClusterConfig): Fleet[] => {
  const offer = options.largest.get(cluster.name)!;
  const provider = createLocalProvider({ resources: async () => offer });
  return [...cluster.queues.values()].map((queue) => ({
    cluster: cluster.name,
    queue: queue.name,
    manager: cluster.type,
    provider,
    policy: queue.fleet,
    nodes: queue.nodes,
    offer,
    walltime: queue.walltime,
    signal: queue.signal,
    signalBefore: queue.signalBefore,
    prompt: true,
    leaseMs: LOCAL_LEASE_MS,
    outputs: () => ["agent.log"],
    prepare: async ({ id, jobName, directory, lifetime }) => ({
      name: jobName,
      directory,
      command: [
        process.execPath,
        join(options.bundles, "agent.js"),
        // several agents on this machine, to try tasks over several nodes
        ...(queue.nodes > 1 ? ["--agents", String(queue.nodes)] : []),
        "--settings",
        JSON.stringify({
          home: options.home,
          pilot: id,
          scratch: options.scratchOf(cluster),
          declared: cluster.resources,
          graceMs: cluster.grace * 1000,
          pin: cluster.pin,
          patienceMs: LOCAL_PATIENCE_MS,
          spawner: process.env["SLIPWAY_SPAWNER"] ?? "auto",
          cgroup: process.env["SLIPWAY_CGROUP"] ?? "auto",
          executor: cluster.executor,
          ...(lifetime === undefined ? {} : { lifetime }),
        }),
      ],
    }),
  }));
};

export const createFleets = (options: FleetsOptions): Fleet[] =>
  [...options.clusters.clusters.values()].flatMap((cluster) =>
    cluster.type === "local"
      ? localFleets(options, cluster)
      : cluster.type === "simulated"
        ? simulatedFleets(options.home, cluster, (node) => localFleets(options, node))
        : [],
  );
