import { join } from "node:path";
import type { ClusterConfig, ClustersConfig } from "../config/clusters-file.ts";
import type { Resources } from "../core/resources.ts";
import type { Provider } from "../managers/provider.ts";
import { createProvider } from "../managers/registry.ts";
import { agentSettings } from "../protocol/agent-settings.ts";
import { placeBundle, pruneBundles } from "./bundle.ts";
import { type Fleet, ofQueue } from "./fleet.ts";
import { simulatedFleets } from "./simulated-fleets.ts";
import { managerFleets } from "./manager-fleets.ts";

/** The fleets that clusters.yaml declares. */

/** A silent local agent keeps its tasks this long while its process lives. */
const LOCAL_LEASE_MS = 60_000;
/** How long an idle local agent waits for a server that is gone. */
const LOCAL_PATIENCE_MS = 120_000;

export interface FleetsOptions {
  readonly home: string;
  /** Directory of the built files, including the agent's bundle. */
  readonly bundles: string;
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  readonly scratchOf: (cluster: ClusterConfig) => string;
  /** Pilots that were submitted and have not ended. */
  readonly living: () => readonly { readonly cluster: string; readonly queue: string; readonly jobName: string }[];
}

const localFleets = (options: FleetsOptions, cluster: ClusterConfig, provider: Provider): Fleet[] => {
  const offer = options.largest.get(cluster.name)!;
  return [...cluster.queues.values()].map((queue) => ({
    ...ofQueue(queue),
    cluster: cluster.name,
    queue: queue.name,
    manager: cluster.manager,
    provider,
    policy: queue.fleet,
    offer,
    prompt: true,
    leaseMs: LOCAL_LEASE_MS,
    outputs: () => ["agent.log"],
    prepare: async ({ id, jobName, directory, lifetime }) => ({
      name: jobName,
      directory,
      command: [
        process.execPath,
        join(options.bundles, "agent-quick.cjs"),
        // several agents on this machine, to try tasks that span nodes
        ...(queue.nodes > 1 ? ["--agents", String(queue.nodes)] : []),
        "--settings",
        JSON.stringify(
          agentSettings({
            home: options.home,
            pilot: id,
            scratch: options.scratchOf(cluster),
            declared: { ...cluster.resources, ...cluster.licences },
            graceMs: cluster.grace * 1000,
            pin: cluster.pin,
            patienceMs: LOCAL_PATIENCE_MS,
            executor: cluster.executor,
            lifetime,
          }),
        ),
      ],
    }),
  }));
};

/** Placed when a pilot first needs it; then bundles that no living pilot uses are removed. */
const sharedBundle = (options: FleetsOptions, fleets: () => readonly Fleet[]): (() => Promise<string>) => {
  let placed: Promise<string> | undefined;
  const place = async (): Promise<string> => {
    const name = await placeBundle(options.home, options.bundles);
    const directories = options.living().flatMap(({ cluster, queue, jobName }) => {
      const fleet = fleets().find((each) => each.cluster === cluster && each.queue === queue);
      return fleet === undefined ? [] : [fleet.directoryOf?.(jobName) ?? join(options.home, "jobs", jobName)];
    });
    await pruneBundles(options.home, name, directories);
    return name;
  };
  return () => {
    placed ??= place().catch((error: unknown) => {
      placed = undefined;
      throw error;
    });
    return placed;
  };
};

export const createFleets = (options: FleetsOptions): Fleet[] => {
  const all = [...options.clusters.clusters.values()];
  const managed: Fleet[] = [];
  const bundle = sharedBundle(options, () => managed);
  const { home } = options;
  managed.push(...all.flatMap((cluster) => managerFleets({ home, bundle }, cluster)));
  const here = all
    .filter(({ manager }) => manager.isHere === true)
    .flatMap((cluster) => {
      const machine = options.largest.get(cluster.name)!;
      const provider = createProvider(cluster, { here: { home, machine } });
      return cluster.type === "simulated"
        ? simulatedFleets(cluster, provider, (node) => localFleets(options, node, provider))
        : localFleets(options, cluster, provider);
    });
  return [...here, ...managed];
};
