import { type StartAsk, type Starter, starterWords, shellWords } from "./starter.ts";

/**
 * Slurm's srun. The agent gets all that the job has on its node: no core is bound (the agent binds tasks), all memory
 * (`--mem=0`), and no `--cpus-per-task`, which would make the step exact; generic resources follow the job. An agent that
 * ends, well or badly, ends no other (`--wait=0`, `--kill-on-bad-exit=0`). The environment is the script's, also after
 * `sbatch --export=NONE`.
 */
const OPTIONS = [
  "--ntasks-per-node=1",
  "--cpu-bind=none",
  "--mem=0",
  "--export=ALL",
  "--wait=0",
  "--kill-on-bad-exit=0",
];

const lines = (ask: StartAsk, own: readonly string[]): string[] => {
  const start = (where: readonly string[]): string =>
    `slipway_start ${starterWords(ask, "srun", [...where, ...OPTIONS, ...own])} ${shellWords(ask.command)}`;
  if (ask.parts <= 1) return [start([`--nodes=${ask.nodes}`, `--ntasks=${ask.nodes}`])];
  // one step for each part: Slurm knows how many nodes it has
  return Array.from({ length: ask.parts }, (_, part) => start([`--het-group=${part}`]));
};

export const srun: Starter = (ask) => ({ start: lines(ask, ["--mpi=none"]) });

/** The same with the site's own kind of MPI, for agents that start MPI programs. */
export const srunMpi: Starter = (ask) => ({ start: lines(ask, []) });
