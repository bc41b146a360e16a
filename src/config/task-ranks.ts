import type { RankSpec } from "../core/spec.ts";
import { type Entry, valueOf, wholeNumber } from "./task-entry.ts";
import { badValue, type Source } from "./source.ts";

/** Tasks of several processes that run together: `nodes`, `ranks`, and what starts them. */

const MOST_RANKS = 1_000_000;
const KEYS = ["nodes", "ranks", "cpus-per-rank", "gpus-per-rank", "rank-launcher"] as const;

/** Undefined for a task of one process. */
export const readRanks = (source: Source, entry: Entry): RankSpec | undefined => {
  if (KEYS.every((key) => valueOf(entry, key) === undefined)) return undefined;
  const whole = (key: "nodes" | "ranks"): number | undefined =>
    wholeNumber(source, entry.path(key), valueOf(entry, key), 1, MOST_RANKS);
  const nodes = whole("nodes");
  const count = whole("ranks") ?? nodes ?? 1;
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
