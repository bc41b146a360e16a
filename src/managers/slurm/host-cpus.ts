import { alike, lookedUp, type HostCpus } from "../host-cpus.ts";
import type { PilotAsk } from "../manager.ts";
import type { SlurmQueue } from "./keys.ts";

export const slurmHostCpus = (
  ask: PilotAsk<SlurmQueue>,
  _directives: readonly string[],
  starter: string,
): HostCpus | undefined => {
  // each step has its own
  if (starter === "srun" || starter === "srun-mpi") return { script: [], here: () => '"${SLURM_CPUS_ON_NODE:-}"' };
  if ((ask.own.parts?.length ?? 1) > 1) return undefined;
  return lookedUp([`if [ "\${SLURM_JOB_NUM_NODES:-}" = 1 ]; then ${alike("${SLURM_CPUS_ON_NODE:-}")}; fi`]);
};
