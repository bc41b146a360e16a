import type { ClusterType } from "../config/cluster-keys.ts";
import type { StarterConfig, StarterName } from "../config/starter-keys.ts";
import { aprun } from "./aprun.ts";
import { gnuParallel } from "./gnu-parallel.ts";
import { jsrun } from "./jsrun.ts";
import type { StartAsk, StartLines, Starter } from "./starter.ts";
import { mpiexec, mpirun } from "./mpiexec.ts";
import { pbsTmrsh } from "./pbs-tmrsh.ts";
import { pbsdsh } from "./pbsdsh.ts";
import { qrsh } from "./qrsh.ts";
import { simple } from "./simple.ts";
import { single } from "./single.ts";
import { srun, srunMpi } from "./srun.ts";
import { oarsh, ssh } from "./ssh.ts";

const STARTERS: Readonly<Record<StarterName, Starter>> = {
  single,
  simple,
  srun,
  "srun-mpi": srunMpi,
  mpiexec,
  mpirun,
  aprun,
  jsrun,
  pbs_tmrsh: pbsTmrsh,
  pbsdsh,
  qrsh,
  ssh,
  oarsh,
  "gnu-parallel": gnuParallel,
  wrapped: single,
};

export const startWith = (ask: StartAsk): StartLines => STARTERS[ask.config.name](ask);

const SEVERAL: Readonly<Record<ClusterType, StarterName>> = {
  slurm: "srun",
  pbs: "pbs_tmrsh",
  sge: "qrsh",
  oar: "oarsh",
  local: "single",
  simulated: "single",
};

/** On one node nothing is needed; on several, what comes with the manager. */
export const defaultStarter = (type: ClusterType, nodes: number, parts = 1): StarterConfig => ({
  name: nodes === 1 && parts === 1 ? "single" : SEVERAL[type],
  overrides: [],
  prefix: [],
});
