import { line, name, type Keys, type Kind } from "../../config/key-table.ts";

/**
 * What only Slurm understands. A key with an index belongs to that part of a heterogeneous job: `gres1` to the second;
 * the key without an index is part 0.
 */

export const PART_KEYS = {
  excludes: line,
  features: line,
  gres: line,
  licence: line,
  /** Names of nodes. Without an index `nodes` is their number: then `nodelist` holds the names. */
  nodes: line,
  partition: name,
  qos: name,
  reserv: name,
} as const;

type PartKey = keyof typeof PART_KEYS;

export type SlurmPart = { readonly [K in PartKey]?: string };

export interface SlurmQueue {
  /** Part 0 first; absent when nothing of the kind was written. */
  readonly parts?: readonly SlurmPart[];
}

export const MOST_PARTS = 10;
const indices = Array.from({ length: MOST_PARTS }, (_, i) => i);

/** Those that are not keys of every queue. */
const PLAIN = { excludes: line, gres: line, licence: line, nodelist: line } as const;

export const SLURM_KEYS: Keys = {
  ...PLAIN,
  ...Object.fromEntries(
    Object.entries(PART_KEYS).flatMap(([key, kind]) =>
      indices.map((i): [string, Kind<unknown>] => [`${key}${i}`, kind]),
    ),
  ),
};

/** Names worth suggesting: not each index of each. */
export const SLURM_SUGGESTED: readonly string[] = [
  ...Object.keys(PLAIN),
  ...Object.keys(PART_KEYS).map((key) => `${key}1`),
];

/** Aliases: part 0 by its index is the key of the queue, or the plain one. */
export const SLURM_ALIASES: Readonly<Record<string, string>> = {
  excludes0: "excludes",
  gres0: "gres",
  licence0: "licence",
  nodes0: "nodelist",
  features0: "constraint",
  partition0: "partition",
  qos0: "qos",
  reserv0: "reservation",
};

/** The parts from a queue's values. Part 0 shares partition, qos, constraint and reservation with the queue itself. */
export const slurmQueue = (values: Readonly<Record<string, unknown>>): SlurmQueue => {
  const text = (key: string): string | undefined => values[key] as string | undefined;
  const part = (i: number): SlurmPart =>
    Object.fromEntries(
      (Object.keys(PART_KEYS) as PartKey[]).flatMap((key) => {
        const value = text(`${key}${i}`);
        return value === undefined ? [] : [[key, value]];
      }),
    );
  const last = indices.findLast((i) => i > 0 && Object.keys(part(i)).length > 0) ?? 0;
  const first: SlurmPart = Object.fromEntries(
    [
      ["excludes", text("excludes")],
      ["gres", text("gres")],
      ["licence", text("licence")],
      ["nodes", text("nodelist")],
    ].filter(([, value]) => value !== undefined),
  );
  if (last === 0 && Object.keys(first).length === 0) return {};
  return { parts: [first, ...indices.slice(1, last + 1).map(part)] };
};
