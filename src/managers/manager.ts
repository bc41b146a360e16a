import type { ClusterConfig } from "../config/clusters-file.ts";
import type { FleetConfig } from "../config/fleet-keys.ts";
import type { Keys, ReadKeys } from "../config/key-table.ts";
import type { QueueJob } from "../config/queue-job.ts";
import type { JobFacts, Starter } from "../starters/starter.ts";
import type { HostCpus } from "./host-cpus.ts";
import type { LaunchDialect } from "./launch-dialect.ts";
import type { ModuleManager } from "./module.ts";
import type { TaskDialect } from "./task-dialect.ts";
import type { WaitingRow } from "./waiting-reason.ts";

/**
 * What is known of a workload manager without speaking to it: its keys in clusters.yaml, its language, its words. Pure,
 * so that configuration and CLI may read it; the driver beside it (`NAME/driver/`) is the server's. `Own` is what the
 * manager alone understands of a queue, `OwnOfCluster` of a cluster: made and read in its folder, passed on by everyone
 * else.
 */
export interface Manager<Own = unknown, OwnOfCluster = unknown> {
  /** For people. */
  readonly title: string;
  /** Keys of queues that no other manager has, their other names, and those worth suggesting (all, unless said). */
  readonly keys: Keys;
  readonly aliases?: Readonly<Record<string, string>>;
  readonly suggested?: readonly string[];
  /** Keys of clusters that no other manager has. */
  readonly clusterKeys?: Keys;
  /** Of the keys that not every manager understands, those that this one does. */
  readonly understands: readonly string[];
  /** How it says what another one's key means. */
  readonly instead?: Readonly<Record<string, string>>;
  /** Its own part of a queue and of a cluster, from the values of its keys. */
  queue(values: ReadKeys["values"]): Own;
  cluster?(values: ReadKeys["values"]): OwnOfCluster;
  /** What people should know of a cluster that is written so, though it works. */
  notices?(own: OwnOfCluster): readonly string[];
  /** Why a pilot of this queue cannot be asked for. */
  problem?(job: QueueJob<Own>): Problem | undefined;
  /** Parts of a heterogeneous job. */
  parts?(own: Own): number;
  /** Its jobs are processes of this machine: nothing is submitted, and no other machine must reach the server. */
  readonly isHere?: true;
  /** For managers that take scripts. */
  readonly batch?: Batch<Own, OwnOfCluster>;
  /** Jobs can be launched on it, each in its user's name. */
  readonly launch?: LaunchDialect<Own>;
  /** Of one from outside: what it was made of, with its driver. */
  readonly outside?: ModuleManager;
  /** Its fleets, where they are not as usual. */
  readonly fleet?: Partial<FleetConfig>;
}

/** A manager whose commands take scripts. */
export interface Batch<Own = unknown, OwnOfCluster = unknown> {
  /** Its word for what jobs are sent to. */
  readonly partition: "partition" | "queue";
  /** Whether it finds a partition itself where none is named and none is the default. */
  readonly choosesPartition: boolean;
  /** Without these nothing works. */
  readonly programs: readonly string[];
  /** What else its driver and scripts call. */
  readonly further: readonly string[];
  /** Files or directories that must be there for its commands to work, where it was said which. */
  configuration?(
    cluster: ClusterConfig<Own, OwnOfCluster>,
    env: Readonly<Record<string, string | undefined>>,
  ): readonly string[];
  /** What its commands say when they find no configuration. */
  readonly unconfigured?: RegExp;
  /** Variables by which its commands find it. */
  environment(cluster: ClusterConfig<Own, OwnOfCluster>): Readonly<Record<string, string>>;
  /** Directive lines of a pilot's script. Throws `bad-value` for what it cannot be asked. */
  directives(ask: PilotAsk<Own>): string[];
  /** What a running job finds in its environment. */
  readonly job: JobFacts;
  /** How many CPUs a job was given on each node, where the manager says; `starter` runs there. */
  hostCpus(ask: PilotAsk<Own>, directives: readonly string[], starter: string): HostCpus | undefined;
  /** Starts agents on several nodes. */
  readonly starter: string;
  /** The same, for a manager from outside that brings its own. */
  readonly start?: Starter;
  /** The programs of starters that are installed with its other commands. */
  readonly ownStarters?: Readonly<Record<string, string>>;
  /** Tasks can be jobs of their own. */
  readonly task?: TaskDialect<Own>;
  /** Why jobs wait, in plain words; the first row that fits counts, so the narrow ones come first. */
  readonly waiting: readonly WaitingRow[];
}

export interface Problem {
  readonly key: string;
  readonly detail: string;
  readonly remedy: string;
}

/** What a pilot's job asks of its manager: its queue as clusters.yaml says it, and what belongs to this job only. */
export interface PilotAsk<Own = unknown> extends Pick<
  QueueJob<Own>,
  | "nodes"
  | "cores"
  | "memory"
  | "gpus"
  | "tmp"
  | "walltime"
  | "partition"
  | "account"
  | "qos"
  | "constraint"
  | "reservation"
  | "exclusive"
  | "options"
  | "skipOptions"
  | "own"
> {
  readonly name: string;
  /** Files for what the job prints; their directory exists. */
  readonly stdout: string;
  readonly stderr: string;
}

/** Paths that were given. */
export const given = (...paths: readonly (string | undefined)[]): string[] =>
  paths.filter((path) => path !== undefined && path !== "") as string[];

/** Variables that have a value. */
export const variables = (pairs: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(pairs).filter((pair): pair is [string, string] => pair[1] !== undefined));

/** Options without those that `skip-options` names; a blank line there names none. */
export const withoutSkipped = (options: readonly string[], skipOptions: readonly string[]): string[] => {
  const texts = skipOptions.filter((text) => text.trim() !== "");
  return options.filter((option) => !texts.some((text) => option.includes(text)));
};
