import { z } from "zod";
import { directory, flag, name, seconds, type Keys, type Kind, type Values } from "./key-table.ts";
import { LAUNCH_KEYS } from "./launch-keys.ts";
import { OAR_KEYS } from "../managers/oar/keys.ts";
import { PBS_KEYS } from "../managers/pbs/keys.ts";
import { QUEUE_ALIASES, QUEUE_KEYS } from "./queue-keys.ts";
import { SGE_ALIASES, SGE_KEYS } from "../managers/sge/keys.ts";
import { simulation } from "../managers/simulated/keys.ts";
import { SLURM_ALIASES, SLURM_KEYS, SLURM_SUGGESTED } from "../managers/slurm/keys.ts";

/** Which keys a cluster and a queue may have, and which manager understands which of them. */

export const CLUSTER_TYPES = ["slurm", "pbs", "sge", "oar", "local", "simulated"] as const;
export type ClusterType = (typeof CLUSTER_TYPES)[number];

const executor: Kind<"process" | "null"> = {
  schema: z
    .union([z.literal("process"), z.literal("null"), z.null()], { error: "must be process or null" })
    .transform((value) => value ?? ("null" as const)),
  plan: { text: true },
  read: (value: "process" | "null") => value,
};

/** Keys that a queue cannot have: what is the same for the whole cluster. */
export const CLUSTER_KEYS = {
  grace: seconds,
  pin: flag,
  executor,
  bin: directory(),
  config: directory(),
  root: directory(),
  cell: name,
  cluster: name,
  simulation,
} as const;

export type ClusterValues = Values<typeof CLUSTER_KEYS>;

const MANAGER_KEYS: Readonly<Partial<Record<ClusterType, Keys>>> = {
  slurm: SLURM_KEYS,
  sge: SGE_KEYS,
  oar: OAR_KEYS,
  pbs: PBS_KEYS,
};

export const KEY_ALIASES: Readonly<Record<string, string>> = { ...QUEUE_ALIASES, ...SLURM_ALIASES, ...SGE_ALIASES };

const managerKeys: Keys = Object.assign({}, ...Object.values(MANAGER_KEYS)) as Keys;
const known: Keys = { ...QUEUE_KEYS, ...managerKeys };

/** Every key of a queue, whatever its manager; aliases included. */
export const ALL_QUEUE_KEYS: Keys = {
  ...known,
  ...Object.fromEntries(
    Object.entries(KEY_ALIASES)
      .filter(([alias]) => !Object.hasOwn(known, alias))
      .map(([alias, key]) => [alias, known[key]!]),
  ),
};

/** Names worth suggesting for one that is not known. */
export const SUGGESTED_QUEUE_KEYS: readonly string[] = [
  ...Object.keys(QUEUE_KEYS),
  ...Object.keys(KEY_ALIASES).filter((alias) => !/\d$/.test(alias)),
  ...SLURM_SUGGESTED,
  ...[SGE_KEYS, OAR_KEYS, PBS_KEYS].flatMap((keys) => Object.keys(keys)),
];

/** Keys that not every manager understands, with those that do. */
const LIMITED: Readonly<Record<string, readonly ClusterType[]>> = {
  ...Object.fromEntries(
    Object.entries(MANAGER_KEYS).flatMap(([type, keys]) =>
      Object.keys(keys).map((key) => [key, [type as ClusterType]]),
    ),
  ),
  qos: ["slurm"],
  constraint: ["slurm", "pbs"],
  reservation: ["slurm", "pbs", "sge"],
  bin: ["slurm", "pbs", "sge", "oar"],
  config: ["slurm", "pbs"],
  root: ["sge"],
  cell: ["sge"],
  cluster: ["sge"],
  simulation: ["simulated"],
  ...Object.fromEntries(Object.keys(LAUNCH_KEYS).map((key) => [key, ["slurm", "pbs"] as const])),
};

/** How a manager says what another one's key means. */
const INSTEAD: Readonly<Record<string, Readonly<Partial<Record<ClusterType, string>>>>> = {
  constraint: {
    sge: "Use hard: [NAME=VALUE].",
    oar: "Use property: \"NAME='VALUE'\".",
  },
  reservation: { oar: 'Use options: ["-t inner=123"].' },
  gres: { pbs: "Use gpus, or select-options.", sge: "Use gpus with gpu-resource, or hard.", oar: "Use resource-spec." },
  place: { slurm: "Use exclusive: true, or options." },
  hard: { slurm: "Use constraint, gres or options.", pbs: "Use select-options.", oar: "Use property." },
  property: { slurm: "Use constraint.", pbs: "Use select-options.", sge: "Use hard: [NAME=VALUE]." },
};

/** Why a key cannot stand in a cluster of this type; undefined when it can. */
export const foreignKey = (
  key: string,
  type: ClusterType,
): { readonly detail: string; readonly remedy: string } | undefined => {
  const understood = LIMITED[key];
  if (understood === undefined || understood.includes(type)) return undefined;
  return {
    detail: `is a key of ${understood.join(" and ")} clusters; this one is of type ${type}`,
    remedy: INSTEAD[key]?.[type] ?? `Remove it; docs/clusters-file.md lists the keys of ${type} clusters.`,
  };
};
