import type { Resources } from "../core/resources.ts";
import type { Manager, Problem } from "../managers/manager.ts";
import type { ClusterKeys } from "./cluster-keys.ts";
import { pickKeys, type ReadKeys } from "./key-table.ts";
import { QUEUE_KEYS, type QueueValues } from "./queue-keys.ts";
import { badValue } from "./source.ts";

/** What a pilot's job of a queue is. Sizes in bytes, times in seconds, `resources` in units; per node where it matters. */
export interface QueueJob<Own = unknown> extends Omit<QueueValues, "nodes" | "cleanup" | "signal" | "signalBefore"> {
  readonly nodes: number;
  /** Named resources of a node. */
  readonly resources: Resources;
  /** Options for the manager, as written after its directive's mark. */
  readonly options: readonly string[];
  /** A directive that contains one of these is left out. */
  readonly skipOptions: readonly string[];
  /** Shell lines around the agents. */
  readonly prologue: readonly string[];
  readonly epilogue: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** When the pilot's directory is removed after its end. */
  readonly cleanup: "always" | "success" | "never";
  /** The signal for tasks that still run this many seconds before their pilot's end. */
  readonly signal: string;
  readonly signalBefore: number;
  /** What only its manager understands. */
  readonly own: Own;
}

type Maps = { readonly resources?: object; readonly environment?: object; readonly licences?: object };

/** Keys one by one, the stronger ones winning; inside `resources`, `environment` and `licences` name by name. */
export const overlay = (weak: ReadKeys | undefined, strong: ReadKeys): ReadKeys => {
  if (weak === undefined) return strong;
  const [below, above] = [weak.values as Maps, strong.values as Maps];
  const merged: Record<string, unknown> = { ...weak.values, ...strong.values };
  for (const key of ["resources", "environment", "licences"] as const)
    if (below[key] !== undefined || above[key] !== undefined) merged[key] = { ...below[key], ...above[key] };
  return { values: merged, places: { ...weak.places, ...strong.places } };
};

/** Refuses keys that a cluster of this type does not understand, each where it was written. */
export const refuseForeign = (keys: ClusterKeys, type: string, { places }: ReadKeys): void => {
  for (const [key, { source, path }] of Object.entries(places)) {
    const foreign = keys.foreign(key, type);
    if (foreign !== undefined) badValue(source, path, foreign.detail, foreign.remedy);
  }
};

/** What no starter could do. */
const starterProblem = (manager: Manager, job: QueueJob): Problem | undefined => {
  const parts = manager.parts?.(job.own) ?? 1;
  const name = job.launcher?.name;
  if (name === undefined) return undefined;
  if ((name === "single" || name === "wrapped") && (job.nodes > 1 || parts > 1))
    return {
      key: "launcher",
      detail: `${name} starts an agent on one node only; a pilot of this queue has more`,
      remedy: "Leave launcher out for the manager's own, or ask for one node.",
    };
  if (parts > 1 && name !== "srun" && name !== "srun-mpi")
    return {
      key: "launcher",
      detail: `${name} reaches only the first part of a heterogeneous job`,
      remedy: "Use srun, or leave launcher out.",
    };
  return undefined;
};

/** The job from all that was written for a queue; what its manager cannot say is refused here. */
export const queueJob = (known: ClusterKeys, type: string, keys: ReadKeys): QueueJob => {
  const manager = known.managers[type]!;
  refuseForeign(known, type, keys);
  const job: QueueJob = {
    nodes: 1,
    options: [],
    skipOptions: [],
    prologue: [],
    epilogue: [],
    environment: {},
    resources: {},
    cleanup: "never",
    signal: "SIGTERM",
    signalBefore: 30,
    ...pickKeys(QUEUE_KEYS, keys.values),
    own: manager.queue(keys.values),
  };
  const problem = manager.problem?.(job) ?? starterProblem(manager, job);
  if (problem !== undefined) {
    const { source, path } = keys.places[problem.key]!;
    badValue(source, path, problem.detail, problem.remedy);
  }
  return job;
};
