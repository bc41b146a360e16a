import { suggest } from "../config/nearest.ts";
import type { RefuseKey } from "./task-dialect.ts";

/** Why a text cannot be part of a line of a batch script; undefined when it can. */
export const lineProblem = (value: string): string | undefined => {
  if (value.trim() === "") return "is empty";
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0008\n-\u001F\u007F]/.test(value)) return "contains a line break or another control character";
  return value.length > 10_000 ? "is longer than 10,000 characters" : undefined;
};

/**
 * Reads a task's keys: under their own names, each a text of one line. `nameOf` gives the own name of a key however it
 * was written, or undefined where there is no such key.
 */
export const readTaskKeys = (
  keys: Readonly<Record<string, string>>,
  nameOf: (written: string) => string | undefined,
  known: readonly string[],
  title: string,
  refuse: RefuseKey,
): Record<string, string> => {
  const found: Record<string, string> = {};
  const spelled = new Map<string, string>();
  for (const [written, value] of Object.entries(keys)) {
    const name = nameOf(written);
    if (name === undefined) {
      refuse(
        written,
        `is not a key of tasks on ${title}${suggest(written, known)}`,
        known.length === 0 ? "Remove it." : `Use ${known.join(", ")}.`,
      );
    }
    const problem = lineProblem(value);
    if (problem !== undefined) refuse(written, problem, "Write it on one line, or leave the key out.");
    const before = spelled.get(name!);
    if (before !== undefined) refuse(written, `means the same as '${before}', which is given too`, "Keep one of them.");
    spelled.set(name!, written);
    found[name!] = value;
  }
  return found;
};
