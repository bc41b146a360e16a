import type { LaunchDialect } from "../launch-dialect.ts";
import type { SlurmQueue } from "./keys.ts";
import { slurmLaunchDirectives } from "./launch-directives.ts";
import { slurmScript } from "./launch-script.ts";
import { SLURM_RANK } from "./rank.ts";
import { readSbatchArgs } from "./sbatch-options.ts";
import { sizeForSlurm } from "./sizing.ts";

export const slurmLaunch: LaunchDialect<SlurmQueue> = {
  commands: ["sbatch", "scancel"],
  variables: ["SLURM_CONF"],
  args: "slurm.sbatch_args",
  checkArgs: readSbatchArgs,
  // separators of Slurm's own lists, the mark of a default key, and what its commands quote with
  notInProjects: /[\s,*"'`\\=|\p{C}]+/gu,
  rank: SLURM_RANK,
  job: (input, ask, common) => {
    const sized = sizeForSlurm(input);
    const { lines, notes, ...rest } = slurmLaunchDirectives(ask, sized);
    const script = slurmScript({ ...common, directives: lines }, sized.sizing.slotsPerNode);
    return { ...rest, sizing: sized.sizing, script, directives: lines, notes: [...sized.notes, ...notes] };
  },
};
