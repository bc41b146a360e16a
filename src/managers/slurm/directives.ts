import { quoteFor } from "../../core/shell-quoting.ts";
import { SlipwayError } from "../../errors.ts";
import { withoutSkipped, type PilotAsk } from "../manager.ts";
import type { SlurmPart, SlurmQueue } from "./keys.ts";

/** The `#SBATCH` lines of a pilot's script. sbatch reads their values as a shell would: quotes, backslashes, comments. */

const MIB = 1024 * 1024;

const checked = (ask: PilotAsk<SlurmQueue>, key: string, value: string): string => {
  // oxlint-disable-next-line no-control-regex
  if (/[\n\r\0]/.test(value))
    throw new SlipwayError("bad-value", {
      where: ask.name,
      key,
      detail: "a line of the batch script cannot hold a line break",
      remedy: "Write it without a line break.",
    });
  return value;
};

/** `%` starts a pattern in the name of an output file, unless it is doubled. */
export const fileName = (path: string): string => path.replaceAll("%", "%%");

const gresOf = (ask: PilotAsk<SlurmQueue>, part: SlurmPart): string | undefined => {
  const named = part.gres;
  if (ask.gpus === undefined || ask.gpus === 0 || /(^|,)(gres\/)?gpu\b/.test(named ?? "")) return named;
  return [`gpu:${ask.gpus}`, ...(named === undefined ? [] : [named])].join(",");
};

/** Options of one part of the job, without their mark; what a part says itself goes before what the queue says. */
const partOptions = (ask: PilotAsk<SlurmQueue>, part: SlurmPart): string[] => {
  const option = (name: string, value: string | number | undefined): string[] =>
    value === undefined ? [] : [`--${name}=${quoteFor(checked(ask, name, String(value)), "word")}`];
  const megabytes = (bytes: number | undefined): string | undefined =>
    // `--mem=0` would ask for all there is
    bytes === undefined || bytes <= 0 ? undefined : `${Math.ceil(bytes / MIB)}M`;
  return [
    ...option("job-name", ask.name),
    ...option("nodes", ask.nodes),
    ...option("ntasks-per-node", 1),
    ...option("cpus-per-task", ask.cores),
    ...option("mem", megabytes(ask.memory)),
    ...option("tmp", megabytes(ask.tmp)),
    ...option("gres", gresOf(ask, part)),
    ...option("time", ask.walltime === undefined ? undefined : Math.max(1, Math.ceil(ask.walltime / 60))),
    ...option("partition", part.partition ?? ask.partition),
    ...option("account", ask.account),
    ...option("qos", part.qos ?? ask.qos),
    ...option("constraint", part.features ?? ask.constraint),
    ...option("reservation", part.reserv ?? ask.reservation),
    ...option("licenses", part.licence),
    ...option("nodelist", part.nodes),
    ...option("exclude", part.excludes),
    ...(ask.exclusive === true ? ["--exclusive"] : []),
    // a pilot that comes back under its old id would meet agents and tasks that have moved on
    "--no-requeue",
    ...ask.options.map((line) => checked(ask, "options", line)),
  ];
};

export const slurmDirectives = (ask: PilotAsk<SlurmQueue>): string[] => {
  const parts = ask.own.parts?.length ? ask.own.parts : [{}];
  const files = [
    `--output=${quoteFor(checked(ask, "stdout", fileName(ask.stdout)), "word")}`,
    `--error=${quoteFor(checked(ask, "stderr", fileName(ask.stderr)), "word")}`,
  ];
  return parts.flatMap((part, at) => {
    const options = [...(at === 0 ? files : []), ...partOptions(ask, part)];
    const kept = withoutSkipped(options, ask.skipOptions);
    return [...(at === 0 ? [] : ["hetjob"]), ...kept].map((text) => `#SBATCH ${text}`);
  });
};
