import { readPbsArgs, pbsWord } from "./pbs-options.ts";
import type { PbsSizing } from "./sizing.ts";
import type { DirectiveInput, Directives } from "./slurm-directives.ts";

export interface PbsDirectives extends Directives {
  /** Lines of the node file for each chunk. */
  readonly linesPerChunk: number;
}

const pbsTime = (seconds: number): string => {
  const whole = Math.max(1, Math.ceil(seconds));
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
};

export const pbsDirectives = (input: DirectiveInput, sized: PbsSizing): PbsDirectives => {
  const { spec, pool, refuse } = input;
  const counted = sized.counted ?? (sized.sizing.slotType === "cpu" ? "ncpus" : "ngpus");
  const user = readPbsArgs(spec.pbs.args, counted, refuse);
  const notes = user.ignored.map((what) => `of pbsbatch_args is left out: ${what}`);
  // an administrator's options of a queue were written for pilots: what a launch decides itself is left out
  const queue = readPbsArgs(
    [
      ...(pool.queue?.options ?? []),
      ...(pool.queue?.pbs?.selectOptions === undefined ? [] : [`-l select=1:${pool.queue.pbs.selectOptions}`]),
    ],
    counted,
    ({ option, detail }) => {
      notes.push(`of the queue's options is left out: ${option ?? detail}`);
    },
  );
  const job = new Map([...queue.job, ...user.job]);
  const chunk = new Map([...queue.chunk, ...user.chunk]);
  if (user.job.has("walltime") && spec.walltime !== undefined) {
    refuse({ entry: 0, option: "-l walltime", detail: " beside walltime", remedy: "Keep one of them." });
  }
  const walltime = job.has("walltime") ? undefined : (spec.walltime ?? pool.queue?.walltime);
  if (walltime !== undefined) job.set("walltime", pbsTime(walltime));

  const own = sized.counted === undefined ? [] : [`${sized.counted}=${sized.each}`];
  const select = [String(sized.chunks), ...own, ...[...chunk].map(([name, value]) => `${name}=${value}`)].join(":");
  const options: [letter: string, value?: string][] = [["N", input.jobName]];
  if (pool.partition !== undefined) options.push(["q", pool.partition]);
  options.push(["o", input.stdout], ["e", input.stderr], ["V"], ["r", "n"], ["W", "umask=0022"]);
  const project = input.project ?? pool.queue?.account;
  if (project !== undefined) options.push(["P", project]);
  options.push(["l", `select=${select}`]);
  for (const [name, value] of job) options.push(["l", `${name}=${value}`]);
  for (const { letter, value } of [...queue.options, ...user.options])
    options.push(value === "" ? [letter] : [letter, value]);
  return {
    lines: options.map(([letter, value]) =>
      value === undefined ? `#PBS -${letter}` : `#PBS -${letter} ${pbsWord(value)}`,
    ),
    ...(walltime === undefined ? {} : { walltime }),
    linesPerChunk: Math.max(1, Number(chunk.get("mpiprocs") ?? 1) || 1),
    notes,
  };
};
