import type { StarterConfig } from "../config/starter-keys.ts";
import { SlipwayError } from "../errors.ts";
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

const isStarter = (name: string): name is StarterName => Object.hasOwn(STARTERS, name);

export const startWith = (ask: StartAsk): StartLines => {
  const { name, start } = ask.config;
  if (start !== undefined) return start(ask);
  if (!isStarter(name)) throw new SlipwayError("internal", { detail: `there is no starter ${name}` });
  return STARTERS[name](ask);
};

/** On one node nothing is needed; on several, what comes with the manager; `start`: one from outside. */
export const defaultStarter = (several: string, nodes: number, parts = 1, start?: Starter): StarterConfig => {
  const isOne = nodes === 1 && parts === 1;
  return {
    name: isOne ? "single" : several,
    overrides: [],
    prefix: [],
    ...(isOne || start === undefined ? {} : { start }),
  };
};
