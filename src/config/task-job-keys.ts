import type { JobSpec } from "../core/spec.ts";
import { type Entry, valueOf } from "./task-entry.ts";
import { badValue, type Path, type Source } from "./source.ts";
import { checkText } from "./text-rules.ts";

/**
 * Keys of a task that is a job of its own (`via: job`) which its cluster's manager alone understands. Here they are
 * texts; the manager's dialect says what they mean, where the cluster is known (resolve-jobs.ts).
 */

const PLAIN = [
  "partition",
  "qos",
  "features",
  "gres",
  "licence",
  "excludes",
  "reserv",
  "nodelist",
  "hard",
  "soft",
  "prio",
  "select",
  "place",
  "properties",
  "types",
] as const;
/** With an index they are those of one part of a heterogeneous job. */
const OF_PARTS = ["partition", "qos", "features", "gres", "licence", "excludes", "nodes", "reserv"] as const;
const INDICES = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] as const;

export type ManagerKey = (typeof PLAIN)[number] | `${(typeof OF_PARTS)[number]}${(typeof INDICES)[number]}`;

export const MANAGER_KEYS: readonly ManagerKey[] = [
  ...PLAIN,
  ...OF_PARTS.flatMap((key) => INDICES.map((index) => `${key}${index}` as const)),
];

/** Those worth suggesting: not each index of each. */
export const MANAGER_SUGGESTED: readonly string[] = [...PLAIN, ...OF_PARTS.map((key) => `${key}1`)];

type Keys = { readonly [K in ManagerKey]?: string | undefined } & {
  readonly nodes?: string | number | undefined;
  readonly backend?: string | undefined;
};

/** Whether it names nodes; a number is how many. */
export const namesNodes = (nodes: string | number | undefined): nodes is string =>
  typeof nodes === "string" && !/^\d+$/.test(nodes.trim());

const managerKeys: ReadonlySet<string> = new Set(MANAGER_KEYS);

const hasManagerKeys = (entry: Keys): boolean => {
  for (const key in entry) if (managerKeys.has(key)) return true;
  return false;
};

const managerKeysOf = (entry: Keys): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const key of hasManagerKeys(entry) ? MANAGER_KEYS : []) {
    const value = entry[key];
    if (value !== undefined) found[key] = value;
  }
  return namesNodes(entry.nodes) ? { ...found, nodes: entry.nodes } : found;
};

/** Keys that tasks of pilots do not have are refused by their names. */
export const refuseJobKeys = (source: Source, entry: Keys, path: Path): void => {
  if (entry.backend === undefined && entry.nodes === undefined && !hasManagerKeys(entry)) return;
  const [key] = [...Object.keys(managerKeysOf(entry)), ...(entry.backend === undefined ? [] : ["backend"])];
  if (key === undefined) return;
  const remedy =
    key === "backend"
      ? "Add via: job, or write options in the queue's entry of clusters.yaml."
      : `Add via: job, or write it in the queue's entry of clusters.yaml${key === "nodes" ? "; as a number it is how many nodes" : ""}.`;
  badValue(source, [...path, key], "goes with via: job; tasks of pilots run where their queue says", remedy);
};

export interface WrittenJob {
  readonly job?: JobSpec;
  /** What `backend` says. */
  readonly backend?: string;
}

/** What a task says to its manager; undefined for a task of pilots. */
export const readJob = (source: Source, entry: Entry, index: number): WrittenJob => {
  if (valueOf(entry, "via") !== "job") {
    refuseJobKeys(source, entry.task, ["tasks", index]);
    return {};
  }
  const [own, below] = [managerKeysOf(entry.task), managerKeysOf(entry.defaults)];
  // the task's own count of nodes replaces a list
  const { nodes: _nodes, ...others } = below;
  const keys = { ...(entry.task.nodes === undefined ? below : others), ...own };
  for (const [key, value] of Object.entries(keys))
    checkText(source, Object.hasOwn(own, key) ? ["tasks", index, key] : ["defaults", key], value);
  const backend = valueOf(entry, "backend");
  if (backend !== undefined) checkText(source, entry.path("backend"), backend);
  return { job: { keys }, ...(backend === undefined ? {} : { backend }) };
};
