import type { Driver } from "../../driver.ts";
import type { PbsQueue } from "../keys.ts";
import { pbsIsTransient } from "./failures.ts";
import { createPbsProvider } from "./provider.ts";

export const pbsDriver: Driver<PbsQueue> = {
  isTransient: pbsIsTransient,
  create: ({ run, programs, cluster }) => createPbsProvider({ run, programs, cluster: cluster.name }),
};
