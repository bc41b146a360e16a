import type { Driver } from "../../driver.ts";
import { variables } from "../../manager.ts";
import type { SgeQueue } from "../keys.ts";
import type { SgeCluster } from "../manager.ts";
import { sgeIsTransient } from "./failures.ts";
import { createSgeProvider } from "./provider.ts";

export const sgeDriver: Driver<SgeQueue, SgeCluster> = {
  isTransient: sgeIsTransient,
  create: ({ run, cluster: { bin, own } }) => createSgeProvider({ run, ...variables({ bin }), ...own }),
};
