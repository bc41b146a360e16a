import { z } from "zod";
import { canonicalResource } from "../core/quantities.ts";
import type { Manager } from "../managers/manager.ts";
import { MANAGERS } from "../managers/managers.ts";
import type { Resources } from "../core/resources.ts";
import {
  checkLine,
  directory,
  flag,
  name,
  oneOf,
  resources,
  seconds,
  whole,
  type Keys,
  type Kind,
  type Values,
} from "./key-table.ts";
import { LAUNCH_KEYS } from "./launch-keys.ts";
import { QUEUE_ALIASES, QUEUE_KEYS } from "./queue-keys.ts";
import { badValue } from "./source.ts";
import { launcherKind, type Starters } from "./starter-keys.ts";

/** Which keys a cluster and a queue may have, and which manager understands which of them: all from the managers' rows. */

/** Names have room for more than where they come from. */
const MOST_IN_PREFIX = 50;

const OF_NODES: readonly string[] = ["cpus", "gpus", "mem", "tmp"];

const executor: Kind<"process" | "null"> = {
  schema: z
    .union([z.literal("process"), z.literal("null"), z.null()], { error: "must be process or null" })
    .transform((value) => value ?? ("null" as const)),
  plan: { text: true },
  read: (value: "process" | "null") => value,
};

/** What all nodes of a cluster share, by any names but those that a node has. */
const licences: Kind<Resources> = {
  ...resources,
  read: (values: never, source, at) => {
    const units = resources.read(values, source, at);
    for (const name of Object.keys(values))
      if (OF_NODES.includes(canonicalResource(name)))
        badValue(
          source,
          [...at, name],
          `${name} belongs to a node, not to the whole cluster`,
          "Write it in resources, or as a key of a queue.",
        );
    return units;
  },
};

/** What the names of tasks' jobs begin with; it may be empty. */
const prefix: Kind<string> = {
  ...name,
  read: (value: string, source, at) =>
    checkLine(source, at, value).length > MOST_IN_PREFIX
      ? badValue(source, at, `has ${value.length} characters; at most ${MOST_IN_PREFIX} are allowed`)
      : value,
};

/** Keys that a queue cannot have: what is the same for the whole cluster. */
export const CLUSTER_KEYS = {
  grace: seconds,
  pin: flag,
  executor,
  bin: directory(),
  config: directory(),
  licences,
  fallback: oneOf("local", "wait"),
  "n-max-queued-jobs": whole(1, 1_000_000),
  "repo-key": prefix,
} as const;

export type ClusterValues = Values<typeof CLUSTER_KEYS>;

/** Keys of any cluster or queue that only managers with a word for them understand. */
const LIMITED = ["qos", "constraint", "reservation", "bin", "config"] as const;
export type LimitedKey = (typeof LIMITED)[number];

export const isLimitedKey = (key: string): key is LimitedKey => (LIMITED as readonly string[]).includes(key);

const NOT_OF_ALL: readonly string[] = [...LIMITED, ...Object.keys(LAUNCH_KEYS)];

export interface ClusterKeys {
  readonly managers: Readonly<Record<string, Manager>>;
  /** Every key of a queue, whatever its manager; aliases included. */
  readonly queue: Keys;
  readonly aliases: Readonly<Record<string, string>>;
  /** Every key of a cluster besides those of its queues. */
  readonly cluster: Keys;
  /** Names worth suggesting for an unknown key of a queue. */
  readonly suggested: readonly string[];
  /** Why a cluster of this type cannot have a key; undefined when it can. */
  readonly foreign: (key: string, type: string) => { readonly detail: string; readonly remedy: string } | undefined;
}

/** `starters`: those from outside. */
export const clusterKeys = (managers: Readonly<Record<string, Manager>>, starters: Starters = {}): ClusterKeys => {
  const all = Object.entries(managers);
  const merged = <T>(of: (manager: Manager) => Readonly<Record<string, T>> | undefined): Record<string, T> =>
    Object.assign({}, ...all.map(([, manager]) => of(manager))) as Record<string, T>;
  const known: Keys = { ...QUEUE_KEYS, launcher: launcherKind(starters), ...merged(({ keys }) => keys) };
  const aliases: Readonly<Record<string, string>> = { ...QUEUE_ALIASES, ...merged((manager) => manager.aliases) };
  /** Keys that not every manager understands, with those that do. */
  const limited: Record<string, string[]> = Object.fromEntries(NOT_OF_ALL.map((key) => [key, []]));
  for (const [type, { keys, clusterKeys: own = {}, understands, launch }] of all) {
    const launched = launch === undefined ? [] : Object.keys(LAUNCH_KEYS);
    for (const key of [...Object.keys(keys), ...Object.keys(own), ...understands, ...launched])
      (limited[key] ??= []).push(type);
  }
  return {
    managers,
    queue: {
      ...known,
      ...Object.fromEntries(
        Object.entries(aliases)
          .filter(([alias]) => !Object.hasOwn(known, alias))
          .map(([alias, key]) => [alias, known[key]!]),
      ),
    },
    aliases,
    cluster: { ...CLUSTER_KEYS, ...LAUNCH_KEYS, ...merged((manager) => manager.clusterKeys) },
    suggested: [
      ...Object.keys(QUEUE_KEYS),
      ...Object.keys(aliases).filter((alias) => !/\d$/.test(alias)),
      ...all.flatMap(([, { keys, suggested }]) => suggested ?? Object.keys(keys)),
    ],
    foreign: (key, type) => {
      const understood = Object.hasOwn(limited, key) ? limited[key]! : undefined;
      if (understood === undefined || understood.includes(type)) return undefined;
      return {
        detail: `is a key of ${understood.join(" and ")} clusters; this one is of type ${type}`,
        remedy:
          managers[type]?.instead?.[key] ?? `Remove it; docs/clusters-file.md lists the keys of ${type} clusters.`,
      };
    },
  };
};

/** Those of the managers that come with Slipway. */
export const BUILT_IN = clusterKeys(MANAGERS);
