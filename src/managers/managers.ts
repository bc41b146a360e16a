import { local } from "./local/manager.ts";
import type { Manager } from "./manager.ts";
import { oar } from "./oar/manager.ts";
import { pbs } from "./pbs/manager.ts";
import { sge } from "./sge/manager.ts";
import { simulated } from "./simulated/manager.ts";
import { slurm } from "./slurm/manager.ts";

/** The workload managers, by the `type` of their clusters. A new one is a folder and a row here. */
export const MANAGERS = { slurm, pbs, sge, oar, local, simulated } as const satisfies Readonly<Record<string, Manager>>;

export type ClusterType = keyof typeof MANAGERS;

/** Those that jobs can be launched on. */
export type LaunchManager = {
  [Type in ClusterType]: (typeof MANAGERS)[Type] extends { readonly launch: unknown } ? Type : never;
}[ClusterType];

export const isLaunchManager = (type: string): type is LaunchManager =>
  Object.hasOwn(MANAGERS, type) && "launch" in MANAGERS[type as ClusterType];
