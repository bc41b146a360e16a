import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import type { ClusterConfig, QueueConfig } from "../../config/clusters-file.ts";
import { toUnits, type Resources } from "../../core/resources.ts";
import type { Provider } from "../../managers/provider.ts";
import { simulatedOptions } from "../../managers/simulated/options.ts";
import { createSimulatedProvider } from "../../managers/simulated/driver/provider.ts";
import { type Simulation, simulationOf } from "../../managers/simulated/driver/simulation.ts";
import type { Fleet } from "./fleet.ts";

/** The fleets of a simulated cluster: agents as the local cluster starts them, one for each node of a pilot. */

const simulationOfCluster = (cluster: ClusterConfig): Simulation =>
  simulationOf(cluster.simulation ?? {}, availableParallelism());

/** What a node of it has: this machine is shared by them all, unless resources are declared. */
export const simulatedNode = (cluster: ClusterConfig, queue?: QueueConfig): Resources => {
  const { nodes, coresPerNode } = simulationOfCluster(cluster);
  return {
    mem: Math.floor(totalmem() / nodes),
    ...cluster.resources,
    cpus: toUnits("cpus", queue?.cores ?? coresPerNode),
    ...(queue?.memory === undefined ? {} : { mem: queue.memory }),
  };
};

const directoryName = (cluster: string): string => encodeURIComponent(cluster).replace(/^\./, "%2E");

export const simulatedProvider = (home: string, cluster: ClusterConfig): Provider =>
  createSimulatedProvider({
    simulation: simulationOfCluster(cluster),
    directory: join(home, "simulated", directoryName(cluster.name)),
  });

/** What a pilot of a queue asks of the simulation. */
export const simulatedWords = (queue: QueueConfig): string[] =>
  simulatedOptions({
    name: "",
    stdout: "",
    stderr: "",
    nodes: queue.nodes,
    extra: queue.options,
    skip: queue.skipOptions,
    ...(queue.cores === undefined ? {} : { cores: queue.cores }),
    ...(queue.walltime === undefined ? {} : { walltime: queue.walltime }),
    ...(queue.partition === undefined ? {} : { partition: queue.partition }),
  });

export const simulatedFleets = (
  home: string,
  cluster: ClusterConfig,
  /** As the fleets of this machine are made. */
  local: (cluster: ClusterConfig) => readonly Fleet[],
): Fleet[] => {
  const provider = simulatedProvider(home, cluster);
  return [...cluster.queues.values()].flatMap((queue) => {
    const resources = simulatedNode(cluster, queue);
    // the simulation starts the command on each node: each has one agent
    const node: ClusterConfig = { ...cluster, resources, queues: new Map([[queue.name, { ...queue, nodes: 1 }]]) };
    return local(node).map((fleet): Fleet => ({
      ...fleet,
      provider,
      nodes: queue.nodes,
      offer: { ...fleet.offer, ...resources },
      prepare: async (pilot) => ({
        ...(await fleet.prepare(pilot)),
        options: simulatedWords(queue),
      }),
    }));
  });
};
