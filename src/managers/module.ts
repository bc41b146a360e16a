import {
  bytes,
  directory,
  flag,
  line,
  lines,
  name,
  oneOf,
  pickKeys,
  requests,
  seconds,
  whole,
  words,
  type Keys,
  type Kind,
} from "../config/key-table.ts";
import type { ClusterConfig } from "../config/clusters-file.ts";
import type { LimitedKey } from "../config/cluster-keys.ts";
import type { QueueJob } from "../config/queue-job.ts";
import type { Starter } from "../starters/starter.ts";
import type { CONTRACT } from "./contract-version.ts";
import type { CommandsOptions } from "./commands.ts";
import type { DriverOptions } from "./driver.ts";
import type { Manager, PilotAsk, Problem } from "./manager.ts";
import type { Provider } from "./provider.ts";
import type { TaskDialect } from "./task-dialect.ts";
import type { WaitingRow } from "./waiting-reason.ts";

/** Managers and starters from outside: what a module that `modules` of clusters.yaml names exports as its default. */
export interface SlipwayModule {
  /** The version of everything below. */
  readonly contract: typeof CONTRACT;
  /** By the `type` of their clusters. */
  readonly managers?: Readonly<Record<string, ModuleManager>>;
  /** By the name that `launcher` of a queue gives them. */
  readonly starters?: Readonly<Record<string, Starter>>;
}

export interface ModuleManager<Own = unknown, OwnOfCluster = unknown> {
  /** For people. */
  readonly title: string;
  /** Programs without which nothing works, and others that it calls: with `bin` they are looked for there. */
  readonly programs: readonly string[];
  readonly further?: readonly string[];
  /** Its own keys of queues, which reach `own` of a queue in camelCase; and of clusters. */
  readonly keys?: Readonly<Record<string, ModuleKey>>;
  readonly clusterKeys?: Readonly<Record<string, ModuleKey>>;
  /** Keys of Slipway's that not every manager understands, but this one does; only `bin`, unless said. */
  readonly understands?: readonly LimitedKey[];
  /** What to write in place of another manager's key. */
  readonly instead?: Readonly<Record<string, string>>;
  /** Why a pilot of this queue cannot be asked for. */
  problem?(job: QueueJob<Own>): Problem | undefined;
  /** Variables by which its commands find it. */
  environment?(cluster: ClusterConfig<Own, OwnOfCluster>): Readonly<Record<string, string>>;
  /** Lines at the top of a pilot's script; `skipOptions` are the manager's to leave out. */
  directives(ask: PilotAsk<Own>): string[];
  /** Tasks can be jobs of their own; without it `via: job` is refused. */
  readonly task?: TaskDialect<Own>;
  /** Shell text that prints the nodes of a job, one per line, each once; needed by starters that name them. */
  readonly hosts?: string;
  /** Starts agents on several nodes: a starter's name; `single`, unless said. */
  readonly starter?: string;
  readonly waiting?: readonly WaitingRow[];
  /** Which outcomes of its commands may pass by themselves. */
  readonly isTransient?: NonNullable<CommandsOptions["isTransient"]>;
  create(options: ModuleDriverOptions<Own, OwnOfCluster>): Provider;
}

export interface ModuleDriverOptions<Own = unknown, OwnOfCluster = unknown> extends Pick<
  DriverOptions<Own, OwnOfCluster>,
  "cluster" | "run" | "programs"
> {
  /** What a driver rejects with; anything else it throws counts as a fault of its own. */
  readonly errors: ModuleErrors;
  /** An amount of a resource as Slipway counts it: `units("cpus", 4)`. */
  readonly units: (resource: string, amount: number) => number;
}

export interface ModuleErrors {
  /** The manager gives no answer: nothing is known, and nothing ends. */
  unreachable(detail: string): Error;
  /** The manager does not want this job; `detail` are its own words. */
  refused(detail: string): Error;
  /** A job may have been accepted under an unknown id: Slipway will look for it by its name. */
  lost(detail: string): Error;
}

const KINDS = {
  name,
  line,
  lines,
  words,
  flag,
  size: bytes,
  duration: seconds,
  number: whole(0, 2 ** 31 - 1),
  path: directory(),
  pairs: requests,
} as const satisfies Readonly<Record<string, Kind<unknown>>>;

/** How the value of a key is read, or what it may be. */
export type ModuleKey = keyof typeof KINDS | { readonly choices: readonly string[] };

const kindOf = (key: ModuleKey): Kind<unknown> | undefined => {
  if (typeof key === "string") return Object.hasOwn(KINDS, key) ? KINDS[key] : undefined;
  return Array.isArray(key?.choices) && key.choices.length > 0 ? oneOf(...key.choices) : undefined;
};

/** What is wrong with a module, and what would be right. */
export class ModuleProblem extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}

const SEE = "docs/adding-a-manager.md shows what a module has.";

const keysOf = (type: string, given: Readonly<Record<string, ModuleKey>> = {}): Keys =>
  Object.fromEntries(
    Object.entries(given).map(([key, value]) => {
      if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(key))
        throw new ModuleProblem(
          `manager ${type}: "${key}" cannot be a key`,
          "Use lower-case letters, digits and dashes.",
        );
      const kind = kindOf(value);
      if (kind === undefined)
        throw new ModuleProblem(
          `manager ${type}: key ${key}: there is no such kind of value`,
          `Use ${Object.keys(KINDS).join(", ")}, or { choices: [...] }.`,
        );
      return [key, kind];
    }),
  );

const must = (is: boolean, type: string, what: string): void => {
  if (!is) throw new ModuleProblem(`manager ${type}: ${what}`, SEE);
};

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((text) => typeof text === "string");

const checkTask = (type: string, task: TaskDialect | undefined): void => {
  if (task === undefined) return;
  must(typeof task === "object" && task !== null, type, "task is not an object");
  for (const name of ["read", "backend", "directives", "jobName"] as const)
    must(typeof task[name] === "function", type, `task.${name} is not a function`);
  must(isTexts(task.keys) && typeof task.usage === "string", type, "task.keys or task.usage is missing");
  // room for the mark by which a job is found again
  must(Number.isInteger(task.mostInName) && task.mostInName >= 15, type, "task.mostInName is less than 15");
  must(task.ranks === "srun" || task.ranks === "mpiexec", type, "task.ranks is neither srun nor mpiexec");
  must(task.variables instanceof RegExp, type, "task.variables is not a regular expression");
  const { array } = task;
  must(array === undefined || /^[A-Za-z_]\w*$/.test(array.variable), type, "task.array.variable is not a variable");
  must(array === undefined || Number.isInteger(array.first), type, "task.array.first is not a number");
};

/** A row as those of `managers.ts` are. */
export const managerOfModule = (
  type: string,
  given: ModuleManager,
  starters: Readonly<Record<string, Starter>>,
): Manager => {
  must(typeof given === "object" && given !== null, type, "is not an object");
  must(typeof given.title === "string" && given.title !== "", type, "has no title");
  must(isTexts(given.programs) && given.programs.length > 0, type, "programs is not a list of names");
  must(isTexts(given.further ?? []) && isTexts(given.understands ?? []), type, "further and understands must be lists");
  must(typeof given.directives === "function", type, "directives is not a function");
  must(typeof given.create === "function", type, "create is not a function");
  must(["undefined", "string"].includes(typeof given.hosts), type, "hosts is not shell text");
  checkTask(type, given.task);
  const [keys, clusterKeys] = [keysOf(type, given.keys), keysOf(type, given.clusterKeys)];
  const { starter = "single", hosts = "hostname" } = given;
  return {
    title: given.title,
    keys,
    clusterKeys,
    understands: given.understands ?? ["bin"],
    instead: given.instead ?? {},
    queue: (values) => pickKeys(keys, values),
    cluster: (values) => pickKeys(clusterKeys, values),
    problem: (job) => given.problem?.(job),
    outside: given,
    batch: {
      partition: "queue",
      choosesPartition: true,
      programs: given.programs,
      further: given.further ?? [],
      environment: (cluster) => given.environment?.(cluster) ?? {},
      directives: (ask) => given.directives(ask),
      job: { hosts: () => hosts },
      hostCpus: () => undefined,
      starter,
      ...(Object.hasOwn(starters, starter) ? { start: starters[starter]! } : {}),
      ...(given.task === undefined ? {} : { task: given.task }),
      waiting: given.waiting ?? [],
    },
  };
};
