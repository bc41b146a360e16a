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
