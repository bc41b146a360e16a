import { toUnits, type Resources } from "../../../core/resources.ts";
import { SlipwayError } from "../../../errors.ts";
import { CommandError, type CommandOptions, type CommandResult, reaching, type RunCommand } from "../../commands.ts";
import type { JobRequest, JobStatus, Partition, Provider } from "../../provider.ts";
import * as parse from "./parse.ts";

export interface SlurmOptions {
  /** Made with `isTransient: slurmIsTransient`. */
  readonly run: RunCommand;
  /** Paths of programs that are not found by their name: `{ sbatch: "/opt/slurm/bin/sbatch" }`. */
  readonly programs?: Readonly<Record<string, string>>;
  /** All jobs are in the server's own name: the controller is asked for these alone, which costs it less. */
  readonly mineOnly?: boolean;
}

const NOT_REACHED = /Unable to contact slurm controller|Slurm backup controller in standby mode|temporarily unable/i;
const NOT_SET_UP =
  /Could not establish a configuration source|Unable to process configuration file|Unable to open slurm.conf/i;
const REPLY_LOST =
  /Socket timed out|Zero Bytes were transmitted|Communication connection failure|Connection (reset|refused)|Resource temporarily unavailable/i;

/** What passes by itself. A submission whose reply was lost may have been taken: only a controller that was not reached has certainly not. */
export const slurmIsTransient = (result: CommandResult, options: CommandOptions): boolean =>
  result.code !== 0 && (NOT_REACHED.test(result.stderr) || (options.once !== true && REPLY_LOST.test(result.stderr)));

/** The variables of its commands change what they print and override what a script says; only where it is found stays. */
const cleanEnvironment = (): Record<string, undefined> =>
  Object.fromEntries(
    Object.keys(process.env)
      .filter((name) => /^(SBATCH|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL|SLURM)_/.test(name))
      .filter((name) => !/^SLURM_(CONF|CONF_SERVER|JWT)$/.test(name))
      .map((name) => [name, undefined]),
  );

/** One word of a command holds at most 128 KiB. */
const MOST_CHARACTERS = 100_000;
const MOST_AT_ONCE = 500;

/** At most so many characters in each, separators included. */
const chunksOf = (ids: readonly string[], mostIds = Infinity): string[][] => {
  const chunks: string[][] = [];
  let length = Infinity;
  for (const id of ids) {
    if (length + id.length + 1 > MOST_CHARACTERS || chunks.at(-1)!.length >= mostIds) {
      chunks.push([]);
      length = 0;
    }
    chunks.at(-1)!.push(id);
    length += id.length + 1;
  }
  return chunks;
};

const isId = (text: string): boolean => /^\d{1,10}$/.test(text);

/** What could be had of each resource on some node; no single node need have all of it. */
const largestOf = (partitions: readonly Partition[]): Resources => {
  const most = (amount: (partition: Partition) => number): number => Math.max(0, ...partitions.map(amount));
  const gpus = most(({ gpusPerNode }) => gpusPerNode);
  return {
    cpus: toUnits(
      "cpus",
      most(({ cpusPerNode }) => cpusPerNode),
    ),
    mem: most(({ memoryPerNode }) => memoryPerNode),
    ...(gpus === 0 ? {} : { gpus: toUnits("gpus", gpus) }),
  };
};

/** Slurm by its commands, from 20.02 on. `squeue` is right at once and shows ended jobs for MinJobAge; `sacct` has the rest. */
export const createSlurmProvider = ({ run, programs = {}, mineOnly = false }: SlurmOptions): Provider => {
  /** Whether there is a history, once that is known. */
  let hasHistory: boolean | undefined;

  const reach = reaching(run, "Slurm");
  const call = (program: string, words: readonly string[], options: CommandOptions = {}): Promise<CommandResult> =>
    reach([programs[program] ?? program, ...words], { ...options, env: { ...cleanEnvironment(), ...options.env } });

  const unreachable = (result: CommandResult): SlipwayError =>
    new SlipwayError("cluster-unreachable", {
      cluster: "Slurm",
      detail: parse.wordsOf(result.stderr) || `${result.argv[0]} ended with ${result.code ?? "a signal"}`,
    });

  const must = async (program: string, words: readonly string[]): Promise<string> => {
    const result = await call(program, words);
    if (result.code !== 0) throw unreachable(result);
    return result.stdout;
  };

  const queue = async (ids?: readonly string[]): Promise<parse.ListedJob[]> => {
    const only = ids === undefined || ids.join().length > MOST_CHARACTERS ? [] : [`--jobs=${ids.join()}`];
    const result = await call("squeue", [
      "--noheader",
      "--states=all",
      ...(mineOnly ? ["--me"] : []),
      ...only,
      `--Format=${parse.SQUEUE_FORMAT}`,
    ]);
    if (result.code === 0) return parse.parseSqueue(result.stdout);
    // asked for a single job that it has forgotten
    if (/Invalid job id specified/.test(result.stderr)) return [];
    throw unreachable(result);
  };

  const history = async (ids: readonly string[]): Promise<ReadonlyMap<string, JobStatus>> => {
    const answers = new Map<string, JobStatus>();
    if (ids.length === 0 || hasHistory === false) return answers;
    for (const chunk of chunksOf(ids)) {
      let result: CommandResult;
      try {
        result = await call(
          "sacct",
          [
            "--allocations",
            "--noheader",
            "--parsable2",
            `--delimiter=${parse.SACCT_DELIMITER}`,
            `--format=${parse.SACCT_FORMAT}`,
            `--jobs=${chunk.join()}`,
          ],
          { env: { SLURM_TIME_FORMAT: parse.SACCT_TIME_FORMAT } },
        );
      } catch (error) {
        // it is not installed; a database that does not answer is another matter
        const { cause } = error as Error;
        if (!(cause instanceof CommandError) || cause.timedOut) throw error;
        hasHistory = false;
        return answers;
      }
      if (/accounting storage is disabled/i.test(result.stderr)) {
        hasHistory = false;
        return answers;
      }
      if (result.code !== 0) {
        // the rest is asked again when the database answers
        for (const id of ids)
          if (!answers.has(id)) answers.set(id, { state: "unknown", raw: "", reason: parse.wordsOf(result.stderr) });
        return answers;
      }
      for (const [id, status] of parse.parseSacct(result.stdout, Date.now())) answers.set(id, status);
    }
    hasHistory = true;
    return answers;
  };

  const words = (job: JobRequest, ...first: readonly string[]): string[] => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for Slurm needs a script" });
    return [...first, `--job-name=${job.name}`, `--chdir=${job.directory}`, ...(job.options ?? []), job.script];
  };

  const submission = async (job: JobRequest, argv: readonly string[]): Promise<CommandResult> => {
    const user = job.user === undefined ? {} : { user: job.user };
    const result = await call("sbatch", argv, { once: true, ...user });
    if (result.code === 0) return result;
    if (NOT_REACHED.test(result.stderr) || NOT_SET_UP.test(result.stderr)) throw unreachable(result);
    if (REPLY_LOST.test(result.stderr)) throw new CommandError(parse.wordsOf(result.stderr), result.argv, true);
    const detail = parse.wordsOf(result.stderr) || `sbatch ended with ${result.code ?? "a signal"}`;
    throw new SlipwayError("cluster-refused", { cluster: "Slurm", detail });
  };

  return {
    describe: async () => {
      const version = (await must("sinfo", ["--version"])).trim();
      const partitions = parse.parseSinfo(await must("sinfo", ["--noheader", "--exact", "-o", parse.SINFO_FORMAT]));
      return { version, largest: largestOf(partitions), partitions };
    },

    submit: async (job) => {
      const { argv, stdout, stderr } = await submission(job, words(job, "--parsable"));
      const nativeId = parse.parseSubmitted(stdout);
      // taken, but under which id is not known: the caller finds it by its name
      if (nativeId === undefined) throw new CommandError("sbatch printed no job id", argv, true);
      const note = parse.wordsOf(stderr);
      return { nativeId, ...(note === "" ? {} : { note }) };
    },

    poll: async (nativeIds) => {
      const ids = [...new Set(nativeIds.filter(isId))];
      const listed = ids.length === 0 ? [] : await queue(ids);
      const answers = new Map<string, JobStatus>(listed.map(({ id, status }) => [id, status]));
      const gone = await history(ids.filter((id) => !answers.has(id)));
      return new Map(
        nativeIds.map((id) => [
          id,
          answers.get(id) ?? gone.get(id) ?? { state: "ended", outcome: "unknown", raw: "gone" },
        ]),
      );
    },

    cancel: async (nativeIds) => {
      for (const chunk of chunksOf([...new Set(nativeIds.filter(isId))], MOST_AT_ONCE)) {
        const { code, stderr } = await call("scancel", chunk);
        const wrong = stderr
          .split("\n")
          .filter(
            (line) => line.trim() !== "" && !/Invalid job id|already completing|already (finished|done)/i.test(line),
          );
        if (code !== 0 && wrong.length > 0)
          throw new SlipwayError("cluster-unreachable", { cluster: "Slurm", detail: parse.wordsOf(wrong.join("\n")) });
      }
    },

    list: async (namePrefix) =>
      (await queue())
        .filter(({ name, status }) => name.startsWith(namePrefix) && status.state !== "ended")
        .map(({ name, id }) => ({ name, nativeId: id })),

    tryOut: async (job) => parse.wordsOf((await submission(job, words(job, "--test-only"))).stderr),
  };
};
