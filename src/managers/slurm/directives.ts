import { quoteFor } from "../../core/shell-quoting.ts";
import { SlipwayError } from "../../errors.ts";
import { withoutSkipped, type PilotAsk } from "../manager.ts";
import type { SlurmPart, SlurmQueue } from "./keys.ts";

/** The `#SBATCH` lines of a script, that of a pilot's or a task's. sbatch reads their values as a shell would: quotes, backslashes, comments. */

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

/** What a part asks for by name, with the job's GPUs where it names none. */
export const gresOf = (gpus: number | undefined, { gres: named }: SlurmPart): string | undefined => {
  if (gpus === undefined || gpus === 0 || /(^|,)(gres\/)?gpu\b/.test(named ?? "")) return named;
  return [`gpu:${gpus}`, ...(named === undefined ? [] : [named])].join(",");
};

/** `--mem=0` would ask for all there is. */
export const megabytes = (bytes: number | undefined): string | undefined =>
  bytes === undefined || bytes <= 0 ? undefined : `${Math.ceil(bytes / MIB)}M`;

/** Options that have a value, by name. */
export type SizeOptions = readonly (readonly [name: string, value: string | number | undefined])[];

/** What makes a job of one kind different from another's. */
export interface SlurmJob {
  /** Of a heterogeneous job several. */
  readonly parts: readonly SlurmPart[];
  /** Names of the output files as Slurm reads them. */
  readonly files: { readonly stdout: string; readonly stderr: string };
  size(part: SlurmPart, at: number): SizeOptions;
  readonly more?: SizeOptions;
}

/** Options of one part of the job, without their mark; what a part says itself goes before what the queue says. */
const partOptions = (ask: PilotAsk<SlurmQueue>, part: SlurmPart, size: SizeOptions, more: SizeOptions): string[] => {
  const option = (name: string, value: string | number | undefined): string[] =>
    value === undefined ? [] : [`--${name}=${quoteFor(checked(ask, name, String(value)), "word")}`];
  const named = (options: SizeOptions): string[] => options.flatMap(([name, value]) => option(name, value));
  return [
    ...option("job-name", ask.name),
    ...named(size),
    ...option("time", ask.walltime === undefined ? undefined : Math.max(1, Math.ceil(ask.walltime / 60))),
    ...option("partition", part.partition ?? ask.partition),
    ...option("account", ask.account),
    ...option("qos", part.qos ?? ask.qos),
    ...option("constraint", part.features ?? ask.constraint),
    ...option("reservation", part.reserv ?? ask.reservation),
    ...option("licenses", part.licence),
    ...option("nodelist", part.nodes),
    ...option("exclude", part.excludes),
    ...named(more),
    ...(ask.exclusive === true ? ["--exclusive"] : []),
    // a job that comes back under its old id would meet agents and tasks that have moved on
    "--no-requeue",
    ...ask.options.map((line) => checked(ask, "options", line)),
  ];
};

/** The lines of a job's script, part by part. */
export const slurmLines = (ask: PilotAsk<SlurmQueue>, { parts, files, size, more = [] }: SlurmJob): string[] => {
  const outputs = [
    `--output=${quoteFor(checked(ask, "stdout", files.stdout), "word")}`,
    `--error=${quoteFor(checked(ask, "stderr", files.stderr), "word")}`,
  ];
  return parts.flatMap((part, at) => {
    const options = [...(at === 0 ? outputs : []), ...partOptions(ask, part, size(part, at), more)];
    const kept = withoutSkipped(options, ask.skipOptions);
    return [...(at === 0 ? [] : ["hetjob"]), ...kept].map((text) => `#SBATCH ${text}`);
  });
};

export const slurmDirectives = (ask: PilotAsk<SlurmQueue>): string[] =>
  slurmLines(ask, {
    parts: ask.own.parts?.length ? ask.own.parts : [{}],
    files: { stdout: fileName(ask.stdout), stderr: fileName(ask.stderr) },
    size: (part) => [
      ["nodes", ask.nodes],
      ["ntasks-per-node", 1],
      ["cpus-per-task", ask.cores],
      ["mem", megabytes(ask.memory)],
      ["tmp", megabytes(ask.tmp)],
      ["gres", gresOf(ask.gpus, part)],
    ],
  });
