import { formatDuration, formatResource, formatSize } from "../core/quantities.ts";
import type { ClusterConfig, ClustersConfig, QueueConfig } from "./clusters-file.ts";

/** What a server that runs may take over of clusters that were read again, and what that changes. Pure. */
export interface ClustersChange {
  /** For people, one thing each: `hpc/cpu: fleet.max 2 → 10`. */
  readonly changes: readonly string[];
  /** What was written but counts only from the server's next start. */
  readonly later: readonly string[];
  /** Clusters that are new, other or gone. */
  readonly touched: ReadonlySet<string>;
  /** Of these, those whose own keys are other: how their manager is reached. */
  readonly reached: ReadonlySet<string>;
  readonly gone: readonly { readonly cluster: string; /** Undefined: all of it. */ readonly queue?: string }[];
  /** What counts from now on. */
  readonly config: ClustersConfig;
}

type Flat = ReadonlyMap<string, string>;

const LONGEST = 60;

/** `fleetMax` as it is written: `fleet-max`. */
const dashed = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const TIMES = /(^|\.)(walltime|signal-before|grace|idle|period|lifetime|stagger|[a-z-]*duration)$/;
const SIZES = /(^|\.)(memory|tmp)$/;

/** As people write it. */
const shown = (key: string, value: unknown): string => {
  if (typeof value === "string") return value;
  if (typeof value !== "number") return JSON.stringify(value);
  const [, resource] = /^(?:resources|licences)\.(.+)$/.exec(key) ?? [];
  if (resource !== undefined) return formatResource(resource, value);
  return TIMES.test(key) ? formatDuration(value) : SIZES.test(key) ? formatSize(value) : String(value);
};

/** Every value under its key; maps by `key.name`. */
const flatten = (value: unknown, prefix: string, into: Map<string, string>): void => {
  if (value === undefined) return;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    into.set(prefix, shown(prefix, value));
    return;
  }
  for (const [key, inner] of Object.entries(value))
    flatten(inner, prefix === "" ? dashed(key) : `${prefix}.${dashed(key)}`, into);
};

const flat = (value: object): Flat => {
  const into = new Map<string, string>();
  flatten(value, "", into);
  return into;
};

const short = (text: string | undefined): string =>
  text === undefined ? "(not set)" : text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;

const differences = (what: string, before: Flat, after: Flat): string[] =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((key) => before.get(key) !== after.get(key))
    .map((key) => `${what}: ${key} ${short(before.get(key))} → ${short(after.get(key))}`);

const without = (value: object, ...keys: readonly string[]): object =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));

const ownKeys = (cluster: ClusterConfig): Flat => flat(without(cluster, "queues", "manager"));
const queueKeys = (queue: QueueConfig): Flat => flat(without(queue, "name"));

/** Amounts that the scheduler counts from its start on. */
const isCounted = ({ manager, licences }: ClusterConfig): boolean =>
  manager.isHere === true || Object.keys(licences).length > 0;

/** A cluster that both have, as far as it can change while the server runs. */
const followed = (before: ClusterConfig, after: ClusterConfig, later: string[]): ClusterConfig => {
  if (before.type !== after.type) {
    later.push(`cluster ${after.name}: type ${before.type} → ${after.type}`);
    return before;
  }
  /** What was counted, or detected, when the server started. */
  const keptOf = ({ licences, resources, own, manager }: ClusterConfig) =>
    manager.isHere === true ? { licences, resources, own } : { licences };
  const kept = keptOf(before);
  later.push(...differences(`cluster ${after.name}`, flat(kept), flat(keptOf(after))));
  if (before.manager.isHere !== true) return { ...after, ...kept };
  const queues = [...after.queues].map(([name, queue]): [string, QueueConfig] => {
    const known = before.queues.get(name);
    return [name, known === undefined ? queue : { ...queue, resources: known.resources }];
  });
  return { ...after, ...kept, queues: new Map(queues) };
};

const queueChanges = (before: ClusterConfig, after: ClusterConfig): string[] => {
  const { name } = after;
  return [
    ...[...after.queues.values()].flatMap((queue) => {
      const known = before.queues.get(queue.name);
      return known === undefined
        ? [`${name}/${queue.name}: added`]
        : differences(`${name}/${queue.name}`, queueKeys(known), queueKeys(queue));
    }),
    ...[...before.queues.keys()]
      .filter((queue) => !after.queues.has(queue))
      .map((queue) => `${name}/${queue}: removed`),
  ];
};

export const compareClusters = (before: ClustersConfig, after: ClustersConfig): ClustersChange => {
  const later: string[] = [];
  const changes: string[] = [];
  const touched = new Set<string>();
  const reached = new Set<string>();
  const gone: { cluster: string; queue?: string }[] = [];
  const clusters = new Map<string, ClusterConfig>();
  for (const [name, cluster] of after.clusters) {
    const known = before.clusters.get(name);
    if (known === undefined && isCounted(cluster)) {
      later.push(`cluster ${name}: added, with amounts that are counted from a start on`);
      continue;
    }
    const next = known === undefined ? cluster : followed(known, cluster, later);
    clusters.set(name, next);
    if (known === undefined) {
      changes.push(`cluster ${name}: added`);
      touched.add(name);
      continue;
    }
    const own = differences(`cluster ${name}`, ownKeys(known), ownKeys(next));
    const ofQueues = queueChanges(known, next);
    if (own.length > 0) reached.add(name);
    if (own.length + ofQueues.length > 0) touched.add(name);
    changes.push(...own, ...ofQueues);
    for (const queue of known.queues.keys()) if (!next.queues.has(queue)) gone.push({ cluster: name, queue });
  }
  for (const name of before.clusters.keys())
    if (!after.clusters.has(name)) {
      changes.push(`cluster ${name}: removed`);
      touched.add(name);
      gone.push({ cluster: name });
    }
  changes.push(...differences("page", flat(before.page), flat(after.page)));
  const settings = ({ default: chosen, limits, keepHistory }: ClustersConfig): Flat =>
    flat({ default: chosen, limits, keepHistory });
  later.push(...differences("settings", settings(before), settings(after)));
  const { default: chosen, limits, keepHistory } = before;
  return {
    changes,
    later,
    touched,
    reached,
    gone,
    config: { ...after, default: chosen, limits, keepHistory, clusters },
  };
};
