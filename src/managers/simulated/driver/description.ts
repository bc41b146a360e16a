import { toUnits } from "../../../core/resources.ts";
import type { ClusterDescription } from "../../provider.ts";
import type { Simulation } from "../simulation.ts";

export const describeSimulation = ({ nodes, coresPerNode, partitions }: Simulation): ClusterDescription => ({
  version: `a simulation of ${nodes} node${nodes === 1 ? "" : "s"}`,
  largest: { cpus: toUnits("cpus", coresPerNode) },
  partitions: partitions.map((name, at) => ({
    name,
    isDefault: at === 0,
    isUp: true,
    nodes,
    cpusPerNode: coresPerNode,
    memoryPerNode: 0,
    gpusPerNode: 0,
    gpuTypes: [],
  })),
});
