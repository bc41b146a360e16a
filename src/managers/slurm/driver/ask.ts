import type { Calls } from "../../calls.ts";
import { chunksOf } from "../../chunks.ts";
import { CommandError, type CommandResult } from "../../commands.ts";
import type { JobStatus } from "../../provider.ts";
import { wholesOf } from "./array-ids.ts";
import * as parse from "./parse.ts";

/** What Slurm is asked: the queue, which shows ended jobs for MinJobAge, and the history of the others. */
export interface SlurmAnswers {
  /** All jobs, or these and perhaps others, that the controller remembers. */
  queue(ids?: readonly string[]): Promise<readonly parse.ListedJob[]>;
  /** How these ended, as far as there is a history. */
  history(ids: readonly string[]): Promise<ReadonlyMap<string, JobStatus>>;
}

/** One word of a command holds at most 128 KiB. */
export const MOST_CHARACTERS = 100_000;

const SACCT_WORDS = [
  "--allocations",
  "--noheader",
  "--parsable2",
  `--delimiter=${parse.SACCT_DELIMITER}`,
  `--format=${parse.SACCT_FORMAT}`,
];

export const createSlurmAnswers = (calls: Calls, mineOnly: boolean): SlurmAnswers => {
  /** Whether there is a history, once that is known. */
  let hasHistory: boolean | undefined;

  /** Undefined where no history is kept. */
  const sacct = async (ids: readonly string[]): Promise<CommandResult | undefined> => {
    try {
      const env = { SLURM_TIME_FORMAT: parse.SACCT_TIME_FORMAT };
      const result = await calls.call("sacct", [...SACCT_WORDS, `--jobs=${ids.join()}`], { env });
      return /accounting storage is disabled/i.test(result.stderr) ? undefined : result;
    } catch (error) {
      // it is not installed; a database that does not answer is another matter
      const { cause } = error as Error;
      if (!(cause instanceof CommandError) || cause.timedOut) throw error;
      return undefined;
    }
  };

  return {
    queue: async (ids) => {
      const wholes = ids === undefined ? "" : wholesOf(ids).join();
      const only = wholes === "" || wholes.length > MOST_CHARACTERS ? [] : [`--jobs=${wholes}`];
      const result = await calls.call("squeue", [
        "--noheader",
        "--array",
        "--states=all",
        ...(mineOnly ? ["--me"] : []),
        ...only,
        `--Format=${parse.SQUEUE_FORMAT}`,
      ]);
      if (result.code === 0) return parse.parseSqueue(result.stdout);
      // asked for a single job that it has forgotten
      if (/Invalid job id specified/.test(result.stderr)) return [];
      throw calls.unreachable(result);
    },

    history: async (ids) => {
      const answers = new Map<string, JobStatus>();
      if (ids.length === 0 || hasHistory === false) return answers;
      for (const chunk of chunksOf(wholesOf(ids), { characters: MOST_CHARACTERS })) {
        const result = await sacct(chunk);
        if (result === undefined) {
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
    },
  };
};
