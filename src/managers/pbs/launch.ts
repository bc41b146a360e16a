import type { LaunchDialect } from "../launch-dialect.ts";
import type { PbsQueue } from "./keys.ts";
import { pbsLaunchDirectives } from "./launch-directives.ts";
import { pbsScript } from "./launch-script.ts";
import { readPbsArgs } from "./qsub-options.ts";
import { PBS_RANK } from "./rank.ts";
import { sizeForPbs } from "./sizing.ts";

export const pbsLaunch: LaunchDialect<PbsQueue> = {
  commands: ["qsub", "qdel"],
  variables: ["PBS_CONF_FILE", "PBS_SERVER", "PBS_DEFAULT"],
  args: "pbs.pbsbatch_args",
  checkArgs: (args, refuse) => void readPbsArgs(args, "ngpus", refuse),
  notInProjects: /(?:[\s/[\]";:|<>+,?*'`\\=\p{C}]|[^\x20-\x7E])+/gu,
  rank: PBS_RANK,
  job: (input, ask, common) => {
    const sized = sizeForPbs(input);
    const { lines, notes, linesPerChunk, isScattered, ...rest } = pbsLaunchDirectives(ask, sized);
    const { chunks, each } = sized;
    const script = pbsScript({ ...common, directives: lines }, { slotsEach: each, linesEach: linesPerChunk });
    const sizing = isScattered
      ? { ...sized.sizing, slotsPerNode: each, nodes: { min: chunks, max: chunks } }
      : sized.sizing;
    return { ...rest, sizing, script, directives: lines, notes: [...sized.notes, ...notes] };
  },
};
