import type { Driver } from "../../driver.ts";
import type { SlurmQueue } from "../keys.ts";
import type { SlurmCluster } from "../manager.ts";
import { slurmIsTransient } from "./failures.ts";
import { createSlurmProvider } from "./provider.ts";

export const slurmDriver: Driver<SlurmQueue, SlurmCluster> = {
  isTransient: slurmIsTransient,
  create: ({ run, programs, everyone }) => createSlurmProvider({ run, programs, mineOnly: !everyone }),
};
