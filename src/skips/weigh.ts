import type { SkipMode } from "../core/task-files.ts";
import type { Reason } from "./reasons.ts";

/** What the files of a task say, once they have been looked at. Pure. */

/** What is known of one file: when it was changed, in nanoseconds; null: it is not there; a text: why nobody can tell. */
export type Seen = bigint | null | string;

export interface SeenFiles {
  /** Path and what was seen, in order. */
  readonly outputs: readonly (readonly [string, Seen])[];
  readonly inputs: readonly (readonly [string, Seen])[];
}

const absent = (files: SeenFiles["outputs"], kind: "no-output" | "no-input"): Reason | undefined => {
  for (const [about, seen] of files) {
    if (seen === null) return { kind, about };
    if (typeof seen === "string") return { kind: "unreadable", about, than: seen };
  }
  return undefined;
};

/** Why the task runs; undefined where its files do not ask for it. Equal times are no reason. */
export const weigh = (mode: SkipMode, { outputs, inputs }: SeenFiles): Reason | undefined => {
  const missing = absent(outputs, "no-output");
  if (missing !== undefined || mode === "present") return missing;
  const missingInput = absent(inputs, "no-input");
  if (missingInput !== undefined || mode === "content") return missingInput;
  const [[output, oldest] = ["", null]] = outputs.toSorted(([, a], [, b]) => ((a as bigint) < (b as bigint) ? -1 : 1));
  const newer = inputs.find(([, seen]) => (seen as bigint) > (oldest as bigint));
  return newer === undefined ? undefined : { kind: "newer", about: newer[0], than: output };
};
