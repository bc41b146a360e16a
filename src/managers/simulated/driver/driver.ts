import { join } from "node:path";
import type { Driver } from "../../driver.ts";
import type { SimulatedCluster } from "../manager.ts";
import { simulationOfCluster } from "../simulation.ts";
import { createSimulatedProvider } from "./provider.ts";

const directoryName = (cluster: string): string => encodeURIComponent(cluster).replace(/^\./, "%2E");

export const simulatedDriver: Driver<unknown, SimulatedCluster> = {
  create: ({ here, cluster }) =>
    createSimulatedProvider({
      simulation: simulationOfCluster(cluster),
      directory: join(here!.home, "simulated", directoryName(cluster.name)),
    }),
};
