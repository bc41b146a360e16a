import type { RunType, SlotType } from "../config/launch-keys.ts";
import { quoteFor } from "../core/shell-quoting.ts";

/**
 * How a container is started on a node: lines of bash for the script of a rank. They find these variables set: `job`, the
 * job's directory; `rank`; `own`, the rank's own directory with `tmp` and `work` in it. They set `seen`, where the
 * container finds the job's directory, and `run`, the words that start the container; the script appends what is to run
 * inside. `fail STATUS TEXT` ends the rank.
 */
export interface ContainerScript {
  readonly lines: readonly string[];
  /** Runs when the rank must end, before its processes get the signal. */
  readonly stop: readonly string[];
  /** Run at the rank's end, whatever it was: nothing of the container is left. */
  readonly remove: readonly string[];
  /** What this runtime cannot do, for people. */
  readonly notes: readonly string[];
}

export interface ContainerBind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface ContainerAsk {
  /** A path, or a reference that the runtime resolves. */
  readonly image: string;
  readonly binds: readonly ContainerBind[];
  /** What the node's GPUs are, where it has been given some. */
  readonly slotType: SlotType;
  /** Names whose values come from the job's environment. */
  readonly inherit: readonly string[];
  /** Unique among jobs; letters, digits and dashes. */
  readonly name: string;
  /** As the runtime's `--version` printed it. */
  readonly version?: string | undefined;
}

export type ContainerRuntime = (ask: ContainerAsk) => ContainerScript;

export const word = (text: string): string => quoteFor(text, "word");

/** Whether the user gives the container a /tmp of his own choice. */
export const bindsTmp = ({ binds }: Pick<ContainerAsk, "binds">): boolean =>
  binds.some(({ target }) => target === "/tmp");

/** Sets `program` to the first of these that the node has. */
export const findProgram = (runType: RunType, [first, ...others]: readonly string[]): string[] => [
  `program=${word(first!)}`,
  ...others.flatMap((other) => [`command -v "$program" >/dev/null 2>&1 || program=${word(other)}`]),
  `command -v "$program" >/dev/null 2>&1 ||`,
  `  fail 127 "${runType}: no ${[first, ...others].join(" or ")} on this node (PATH=$PATH)"`,
];

/** Variables that a runtime with an empty environment is given from the job's. */
export const PASSED = [
  "SLURM_*",
  "PBS_*",
  "CUDA_VISIBLE_DEVICES",
  "NVIDIA_VISIBLE_DEVICES",
  "ROCR_VISIBLE_DEVICES",
  "HIP_VISIBLE_DEVICES",
] as const;

/** Appends `--env NAME` for each of them that is set: the value goes by the runtime's own environment, not by words. */
export const passEnvironment = (inherit: readonly string[]): string[] => [
  "while read -r name; do",
  "  case $name in",
  `    ${[...PASSED, ...inherit].join(" | ")}) run+=(--env "$name") ;;`,
  "  esac",
  "done < <(compgen -e)",
];
