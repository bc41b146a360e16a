import type { StarterConfig } from "../config/starter-keys.ts";
import { quoteFor } from "../core/shell-quoting.ts";

/**
 * The contract of a starter: lines of shell that start a command on every node of a job, exactly once on each. Pure:
 * it builds text. The lines run inside a pilot's script (src/managers/pilot-script.ts), which gives them
 * `slipway_start WORDS…`: starts the words in the background and waits for them later.
 */
export type Starter = (ask: StartAsk) => StartLines;

export interface StartAsk {
  /** What each node runs. A starter that names the nodes one by one adds the node's name as a last word. */
  readonly command: readonly string[];
  readonly nodes: number;
  /** Parts of a heterogeneous job (Slurm); 1 for every other. */
  readonly parts: number;
  readonly job: JobFacts;
  readonly config: StarterConfig;
  /** Where the manager's own programs are, when the cluster says. */
  readonly bin?: string | undefined;
  /** Shared by the nodes and private to the job. */
  readonly directory: string;
}

/** What a job of a manager finds in its own environment, as shell text. */
export interface JobFacts {
  /** Prints the job's nodes, one per line, each once; `program` gives the word for one of the manager's own. */
  hosts(program: (name: string) => string): string;
  /** Directories of the manager's programs, where a job's PATH does not lead to them. */
  readonly programs?: string;
  /** The remote shell between a job's nodes, of a manager that MPI's own starters do not know. */
  readonly remoteShell?: string;
}

export interface StartLines {
  readonly start: readonly string[];
  /**
   * How the signal $1 reaches the node $2's process $3, where a signal to what was started here does not: words as
   * shell text.
   */
  readonly remoteKill?: string;
  /** The script's environment does not reach the command: it is left in a file for it. */
  readonly bare?: boolean;
}

/** Words as shell text, each one data. */
export const shellWords = (words: readonly string[]): string => words.map((word) => quoteFor(word, "word")).join(" ");

/** The starter's program and its own options (plain words), with what the configuration adds after them. */
export const starterWords = ({ config }: StartAsk, program: string, options: readonly string[]): string =>
  [shellWords([config.program ?? program]), ...options, ...config.overrides.map((word) => shellWords([word]))].join(
    " ",
  );

/** A program of the manager's own: the line that finds it, and the word for it from then on. */
export const managerProgram = (
  ask: StartAsk,
  program: string,
): { readonly find: readonly string[]; readonly words: string } =>
  ask.config.program === undefined
    ? {
        find: [
          `slipway_program=$(PATH="$PATH:${ask.job.programs ?? ""}"; command -v ${program}) || slipway_program=${program}`,
        ],
        words: ['"$slipway_program"', ...ask.config.overrides.map((word) => shellWords([word]))].join(" "),
      }
    : { find: [], words: starterWords(ask, program, []) };

/** Shell text that prints the job's nodes, one per line, each once. */
export const hostsOf = ({ job, bin }: Pick<StartAsk, "job" | "bin">): string =>
  job.hosts((name) => shellWords([bin === undefined ? name : `${bin}/${name}`]));

/** Shell text that prints the first word of each line of a file, each once: of most managers the nodes of a job. */
export const uniqueOf = (file: string): string => `awk '!seen[$1]++ { print $1 }' "${file}"`;
