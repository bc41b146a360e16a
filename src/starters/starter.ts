import type { ClusterType } from "../config/cluster-keys.ts";
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
  readonly manager: ClusterType;
  readonly config: StarterConfig;
  /** Where the manager's own programs are, when the cluster says. */
  readonly bin?: string | undefined;
  /** Shared by the nodes and private to the job. */
  readonly directory: string;
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

/** The starter's program and its own options (plain words), with what the configuration puts behind them. */
export const starterWords = ({ config }: StartAsk, program: string, options: readonly string[]): string =>
  [shellWords([config.program ?? program]), ...options, ...config.overrides.map((word) => shellWords([word]))].join(
    " ",
  );

/** Where a manager's programs are, in a job whose PATH does not lead to them. */
const PROGRAMS: Readonly<Partial<Record<ClusterType, string>>> = { pbs: "$PBS_O_PATH", sge: "$SGE_BINARY_PATH" };

/** A program of the manager's own: the line that finds it, and the word for it from then on. */
export const managerProgram = (
  ask: StartAsk,
  program: string,
): { readonly find: readonly string[]; readonly words: string } =>
  ask.config.program === undefined
    ? {
        find: [
          `slipway_program=$(PATH="$PATH:${PROGRAMS[ask.manager] ?? ""}"; command -v ${program}) || slipway_program=${program}`,
        ],
        words: ['"$slipway_program"', ...ask.config.overrides.map((word) => shellWords([word]))].join(" "),
      }
    : { find: [], words: starterWords(ask, program, []) };

const UNIQUE = `awk '!seen[$1]++ { print $1 }'`;

/** Shell text that prints the job's nodes, one per line, each once. */
export const hostsOf = ({ manager, bin }: Pick<StartAsk, "manager" | "bin">): string => {
  switch (manager) {
    case "slurm":
      return `${shellWords([bin === undefined ? "scontrol" : `${bin}/scontrol`])} show hostnames "$SLURM_JOB_NODELIST"`;
    case "pbs":
      return `${UNIQUE} "$PBS_NODEFILE"`;
    case "sge":
      // without a parallel environment there is no file
      return `awk '!seen[$1]++ { print $1 } END { if (NR == 0) system("hostname") }' "\${PE_HOSTFILE:-/dev/null}"`;
    case "oar":
      return `${UNIQUE} "$OAR_NODEFILE"`;
    default:
      return "hostname";
  }
};
