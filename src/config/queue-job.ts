import type { Resources } from "../core/resources.ts";
import { foreignKey, type ClusterType } from "./cluster-keys.ts";
import { pickKeys, type ReadKeys } from "./key-table.ts";
import { OAR_KEYS, oarProblem, type OarQueue } from "../managers/oar/keys.ts";
import { PBS_KEYS, type PbsQueue } from "../managers/pbs/keys.ts";
import { QUEUE_KEYS, type QueueValues } from "./queue-keys.ts";
import { SGE_KEYS, sgeProblem, type SgeQueue } from "../managers/sge/keys.ts";
import { slurmQueue, type SlurmQueue } from "../managers/slurm/keys.ts";
import { badValue } from "./source.ts";

/** What a pilot's job of a queue is. Sizes in bytes, times in seconds, `resources` in units; per node where it matters. */
export interface QueueJob extends Omit<QueueValues, "nodes" | "cleanup" | "signal" | "signalBefore"> {
  readonly nodes: number;
  /** Named resources of a node. */
  readonly resources: Resources;
  /** Options for the manager, as they would stand behind its directive's mark. */
  readonly options: readonly string[];
  /** A directive that contains one of these is left out. */
  readonly skipOptions: readonly string[];
  /** Shell lines around the agents. */
  readonly prologue: readonly string[];
  readonly epilogue: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** When the pilot's directory is removed after its end. */
  readonly cleanup: "always" | "success" | "never";
  /** What tasks get that still run so many seconds before their pilot's end. */
  readonly signal: string;
  readonly signalBefore: number;
  readonly slurm?: SlurmQueue;
  readonly sge?: SgeQueue;
  readonly oar?: OarQueue;
  readonly pbs?: PbsQueue;
}

type Maps = { readonly resources?: object; readonly environment?: object };

/** Keys one by one, the stronger ones winning; inside `resources` and `environment` name by name. */
export const overlay = (weak: ReadKeys | undefined, strong: ReadKeys): ReadKeys => {
  if (weak === undefined) return strong;
  const [below, above] = [weak.values as Maps, strong.values as Maps];
  const merged: Record<string, unknown> = { ...weak.values, ...strong.values };
  for (const key of ["resources", "environment"] as const)
    if (below[key] !== undefined || above[key] !== undefined) merged[key] = { ...below[key], ...above[key] };
  return { values: merged, places: { ...weak.places, ...strong.places } };
};

/** Refuses keys that a cluster of this type does not understand, each where it was written. */
export const refuseForeign = (type: ClusterType, { places }: ReadKeys): void => {
  for (const [key, { source, path }] of Object.entries(places)) {
    const foreign = foreignKey(key, type);
    if (foreign !== undefined) badValue(source, path, foreign.detail, foreign.remedy);
  }
};

/** What no starter could do. */
const starterProblem = (
  job: QueueJob,
): { readonly key: string; readonly detail: string; readonly remedy: string } | undefined => {
  const parts = job.slurm?.parts?.length ?? 1;
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

const managerPart = (
  type: ClusterType,
  values: ReadKeys["values"],
): Pick<QueueJob, "slurm" | "sge" | "oar" | "pbs"> => {
  if (type === "slurm") return { slurm: slurmQueue(values) };
  if (type === "sge") return { sge: pickKeys(SGE_KEYS, values) };
  if (type === "oar") return { oar: pickKeys(OAR_KEYS, values) };
  return type === "pbs" ? { pbs: pickKeys(PBS_KEYS, values) } : {};
};

/** The job from all that was written for a queue; what its manager cannot say is refused here. */
export const queueJob = (type: ClusterType, keys: ReadKeys): QueueJob => {
  refuseForeign(type, keys);
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
    ...managerPart(type, keys.values),
  };
  const problem =
    (job.sge === undefined ? undefined : sgeProblem(job.sge, job)) ??
    (job.oar === undefined ? undefined : oarProblem(job.oar, job)) ??
    starterProblem(job);
  if (problem !== undefined) {
    const { source, path } = keys.places[problem.key]!;
    badValue(source, path, problem.detail, problem.remedy);
  }
  return job;
};
