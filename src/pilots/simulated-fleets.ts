import { totalmem } from "node:os";
import type { ClusterConfig, QueueConfig } from "../config/clusters-file.ts";
import { toUnits, type Resources } from "../core/resources.ts";
import { simulatedOptions } from "../managers/simulated/options.ts";
import type { Provider } from "../managers/provider.ts";
import { simulationOfCluster } from "../managers/simulated/simulation.ts";
import type { Fleet } from "./fleet.ts";

/** The fleets of a simulated cluster: agents as the local cluster starts them, one for each node of a pilot. */

/** What a node of it has: all nodes share this machine, unless resources are declared. */
export const simulatedNode = (cluster: ClusterConfig, queue?: QueueConfig): Resources => {
  const { nodes, coresPerNode } = simulationOfCluster(cluster);
  return {
    mem: Math.floor(totalmem() / nodes),
    ...cluster.resources,
    cpus: toUnits("cpus", queue?.cores ?? coresPerNode),
    ...(queue?.memory === undefined ? {} : { mem: queue.memory }),
  };
};

export const simulatedFleets = (
  cluster: ClusterConfig,
  provider: Provider,
  /** Makes fleets as for this machine. */
  local: (cluster: ClusterConfig) => readonly Fleet[],
): Fleet[] =>
  [...cluster.queues.values()].flatMap((queue) => {
    const resources = simulatedNode(cluster, queue);
    // the simulation starts the command on each node, so each has one agent
    const node: ClusterConfig = { ...cluster, resources, queues: new Map([[queue.name, { ...queue, nodes: 1 }]]) };
    return local(node).map((fleet): Fleet => ({
      ...fleet,
      provider,
      nodes: queue.nodes,
      offer: { ...fleet.offer, ...resources, ...cluster.licences },
      prepare: async (pilot) => ({
        ...(await fleet.prepare(pilot)),
        options: simulatedOptions(queue),
      }),
    }));
  });
