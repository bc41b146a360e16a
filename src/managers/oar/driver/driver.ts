import type { Driver } from "../../driver.ts";
import { variables } from "../../manager.ts";
import type { OarQueue } from "../keys.ts";
import { oarIsTransient } from "./failures.ts";
import { createOarProvider } from "./provider.ts";

export const oarDriver: Driver<OarQueue> = {
  isTransient: oarIsTransient,
  create: ({ run, cluster: { bin, queues } }) => {
    const named = [...queues.values()].map(({ own }) => own.memoryPerCorePropertyName).find((name) => name != null);
    return createOarProvider({ run, ...variables({ bin, memoryPerCoreProperty: named ?? undefined }) });
  },
};
