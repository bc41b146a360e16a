import type { Driver } from "../../driver.ts";
import type { SlurmQueue } from "../keys.ts";
import { slurmIsTransient } from "./failures.ts";
import { createSlurmProvider } from "./provider.ts";

export const slurmDriver: Driver<SlurmQueue> = {
  isTransient: slurmIsTransient,
  create: ({ run, programs, everyone }) => createSlurmProvider({ run, programs, mineOnly: !everyone }),
};
