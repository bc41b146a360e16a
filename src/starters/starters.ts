import type { StarterConfig } from "../config/starter-keys.ts";
import { aprun } from "./aprun.ts";
import { gnuParallel } from "./gnu-parallel.ts";
import { jsrun } from "./jsrun.ts";
import { mpiexec, mpirun } from "./mpiexec.ts";
import { pbsTmrsh } from "./pbs-tmrsh.ts";
import { pbsdsh } from "./pbsdsh.ts";
import { qrsh } from "./qrsh.ts";
import { simple } from "./simple.ts";
import { single } from "./single.ts";
import { srun, srunMpi } from "./srun.ts";
import { oarsh, ssh } from "./ssh.ts";
import type { StartAsk, Starter, StartLines } from "./starter.ts";

/** What starts the agent on every node of a pilot's job, by its name in clusters.yaml. */
export const STARTERS = {
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
} as const satisfies Readonly<Record<string, Starter>>;

export type StarterName = keyof typeof STARTERS;

export const isStarter = (name: string): name is StarterName => Object.hasOwn(STARTERS, name);

export const startWith = (ask: StartAsk): StartLines => STARTERS[ask.config.name](ask);

/** On one node nothing is needed; on several, what comes with the manager. */
export const defaultStarter = (several: StarterName, nodes: number, parts = 1): StarterConfig => ({
  name: nodes === 1 && parts === 1 ? "single" : several,
  overrides: [],
  prefix: [],
});
