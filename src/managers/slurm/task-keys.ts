import type { RefuseKey } from "../task-dialect.ts";
import { readTaskKeys } from "../task-keys.ts";
import { MOST_PARTS, PART_KEYS, type SlurmPart } from "./keys.ts";

/**
 * Keys of a task that only Slurm understands, passed on as they are. An index says which part of a heterogeneous job is
 * meant; without one it is part 0. There `nodes` is `nodelist`: as a number it is how many nodes the task has.
 */
export const SLURM_TASK_KEYS: readonly string[] = [
  ...Object.keys(PART_KEYS).filter((key) => key !== "nodes"),
  "nodelist",
];

const nameOf = (written: string): string | undefined => {
  if (written === "nodelist") return "nodelist";
  const [, key = "", index] = /^([a-z]+)(\d?)$/.exec(written) ?? [];
  if (!Object.hasOwn(PART_KEYS, key) || Number(index) >= MOST_PARTS) return undefined;
  if (index !== "" && index !== "0") return written;
  return key === "nodes" ? "nodelist" : key;
};

export const readSlurmTask = (keys: Readonly<Record<string, string>>, refuse: RefuseKey): Record<string, string> => {
  const found = readTaskKeys(keys, nameOf, SLURM_TASK_KEYS, "Slurm", refuse);
  if (/^\d+$/.test(found["nodelist"] ?? ""))
    refuse("nodes", "is a number where names of nodes are meant", "Write names, such as n[1-4]; nodes: 4 is how many.");
  return found;
};

/** The parts that a task's keys ask for, part 0 first; there is always one. */
export const slurmTaskParts = (keys: Readonly<Record<string, string>>): SlurmPart[] => {
  const parts: Record<string, string>[] = [{}];
  for (const [written, value] of Object.entries(keys)) {
    const [, key = "", index = ""] = written === "nodelist" ? ["", "nodes"] : (/^([a-z]+)(\d?)$/.exec(written) ?? []);
    const at = Number(index);
    while (parts.length <= at) parts.push({});
    parts[at]![key] = value;
  }
  return parts;
};
