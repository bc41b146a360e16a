import { SlipwayError } from "../../../errors.ts";
import { createCalls } from "../../calls.ts";
import { chunksOf } from "../../chunks.ts";
import { CommandError, type CommandResult, type RunCommand } from "../../commands.ts";
import type { JobRequest, JobStatus, Provider } from "../../provider.ts";
import { elementId, isElement, isId } from "./array-ids.ts";
import { createSlurmAnswers, MOST_CHARACTERS } from "./ask.ts";
import { describeSlurm } from "./description.ts";
import { isNotReached, isReplyLost } from "./failures.ts";
import { createNice } from "./nice.ts";
import { parseLicences } from "./parse-config.ts";
import { parseSubmitted, wordsOf } from "./parse.ts";

export interface SlurmOptions {
  /** Made with `isTransient: slurmIsTransient`. */
  readonly run: RunCommand;
  /** Paths of programs that are not found by their name: `{ sbatch: "/opt/slurm/bin/sbatch" }`. */
  readonly programs?: Readonly<Record<string, string>>;
  /** All jobs are in the server's own name: asking the controller only for these costs it less. */
  readonly mineOnly?: boolean;
}

const MOST_AT_ONCE = 500;
const GONE: JobStatus = { state: "ended", outcome: "unknown", raw: "gone" };
const TAKEN: JobStatus = { state: "ended", outcome: "cancelled", raw: "gone", reason: "cancelled before it began" };
const MOST_TAKEN = 10_000;
/** What scancel says of a job that needs no cancelling. */
const IS_ENDING = /Invalid job id|already completing|already (finished|done)/i;

const ownIds = (ids: readonly string[]): string[] => [...new Set(ids)].filter(isId);

/** The variables of its commands change what they print and override what a script says; only where it is found stays. */
const cleanEnvironment = (): Record<string, undefined> =>
  Object.fromEntries(
    Object.keys(process.env)
      .filter((name) => /^(SBATCH|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL|SLURM)_/.test(name))
      .filter((name) => !/^SLURM_(CONF|CONF_SERVER|JWT)$/.test(name))
      .map((name) => [name, undefined]),
  );

/** Slurm by its commands, from 20.02 on. `squeue` is right at once and shows ended jobs for MinJobAge; `sacct` has the rest. */
export const createSlurmProvider = ({ run, programs = {}, mineOnly = false }: SlurmOptions): Provider => {
  const calls = createCalls({
    run,
    cluster: "Slurm",
    pathOf: (program) => programs[program] ?? program,
    env: cleanEnvironment,
    wordsOf: ({ argv, code, stderr }) => wordsOf(stderr) || `${argv[0]} ended with ${code ?? "a signal"}`,
  });
  const answers = createSlurmAnswers(calls, mineOnly);
  // of an element that is cancelled before it began Slurm keeps no record
  const taken = new Set<string>();

  const submitted = async (job: JobRequest, extra: readonly string[]): Promise<CommandResult> => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for Slurm needs a script" });
    const where = [`--job-name=${job.name}`, `--chdir=${job.directory}`];
    const array = job.array === undefined ? [] : [`--array=0-${job.array - 1}`];
    const result = await calls.call("sbatch", [...extra, ...where, ...array, ...(job.options ?? []), job.script], {
      once: true,
      ...(job.user === undefined ? {} : { user: job.user }),
    });
    if (result.code === 0) return result;
    if (isNotReached(result)) throw calls.unreachable(result);
    if (isReplyLost(result)) throw new CommandError(wordsOf(result.stderr), result.argv, true);
    throw calls.refused(wordsOf(result.stderr) || `sbatch ended with ${result.code ?? "a signal"}`);
  };

  const remove = async (ids: readonly string[]): Promise<void> => {
    for (const chunk of chunksOf(ids, { ids: MOST_AT_ONCE, characters: MOST_CHARACTERS })) {
      const { code, stderr } = await calls.call("scancel", chunk);
      const troubles = stderr.split("\n").filter((line) => line.trim() !== "" && !IS_ENDING.test(line));
      if (code !== 0 && troubles.length > 0) throw calls.unreachable(wordsOf(troubles.join("\n")));
      for (const id of chunk.filter(isElement)) taken.add(id);
      for (const id of taken) if (taken.size > MOST_TAKEN) taken.delete(id);
    }
  };
  /** The row that waiting elements share says only that they waited. */
  const ended = (id: string, record: JobStatus = GONE): JobStatus =>
    record.outcome === "unknown" && taken.has(id) ? TAKEN : record;

  return {
    describe: () => describeSlurm(calls),

    submit: async (job) => {
      const { argv, stdout, stderr } = await submitted(job, ["--parsable"]);
      const nativeId = parseSubmitted(stdout);
      // accepted, but under an unknown id: the caller finds it by its name
      if (nativeId === undefined) throw new CommandError("sbatch printed no job id", argv, true);
      const note = wordsOf(stderr);
      const elements = Array.from({ length: job.array ?? 0 }, (_, element) => elementId(nativeId, element));
      return { nativeId, ...(elements.length === 0 ? {} : { elements }), ...(note === "" ? {} : { note }) };
    },

    poll: async (nativeIds) => {
      const ids = ownIds(nativeIds);
      const listed = ids.length === 0 ? [] : await answers.queue(ids);
      const found = new Map(listed.map(({ id, status }) => [id, status]));
      const gone = await answers.history(ids.filter((id) => !found.has(id)));
      return new Map(nativeIds.map((id) => [id, found.get(id) ?? ended(id, gone.get(id))]));
    },

    cancel: (nativeIds) => remove(ownIds(nativeIds)),

    list: async (namePrefix) =>
      (await answers.queue())
        .filter(({ name, status }) => name.startsWith(namePrefix) && status.state !== "ended")
        .map(({ name, id, array }) => ({ name, nativeId: id, ...(array === undefined ? {} : { array }) })),

    licences: async () => parseLicences(await calls.ask("scontrol", ["--oneliner", "show", "licenses"])),

    ...createNice(calls),

    tryOut: async (job) => wordsOf((await submitted(job, ["--test-only"])).stderr),
  };
};
