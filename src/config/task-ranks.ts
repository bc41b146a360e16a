import type { RankSpec } from "../core/spec.ts";
import { namesNodes } from "./task-job-keys.ts";
import { type Entry, valueOf, wholeNumber } from "./task-entry.ts";
import { badValue, type Source } from "./source.ts";

/** Tasks of several processes that run together: `nodes`, `ranks`, and what starts them. */

const MOST_RANKS = 1_000_000;
const KEYS = ["nodes", "ranks", "cpus-per-rank", "gpus-per-rank", "rank-launcher"] as const;

/** Undefined for a task of one process. */
export const readRanks = (source: Source, entry: Entry): RankSpec | undefined => {
  const asked = valueOf(entry, "nodes");
  const names = namesNodes(asked);
  if (KEYS.every((key) => valueOf(entry, key) === undefined || (key === "nodes" && names))) return undefined;
  const whole = (key: "nodes" | "ranks", value: number | undefined): number | undefined =>
    wholeNumber(source, entry.path(key), value, 1, MOST_RANKS);
  const nodes = whole("nodes", asked === undefined || names ? undefined : Number(asked));
  const count = whole("ranks", valueOf(entry, "ranks")) ?? nodes ?? 1;
  if (nodes !== undefined && count < nodes)
    badValue(
      source,
      entry.path("ranks"),
      `${count} ranks cannot be spread over ${nodes} nodes`,
      "Each rank runs on one node.",
    );
  const by = valueOf(entry, "rank-launcher") ?? "agents";
  return nodes === undefined ? { count, by } : { count, nodes, by };
};
