import { availableParallelism } from "node:os";
import type { ClusterConfig } from "../../config/clusters-file.ts";
import type { SimulationValues } from "./keys.ts";
import type { SimulatedCluster } from "./manager.ts";

/** How a simulated cluster behaves. Times in milliseconds; a rate is the chance of it for each job. */
export interface Simulation {
  readonly nodes: number;
  readonly coresPerNode: number;
  readonly partitions: readonly string[];
  /** The mean time until a job is considered at all, whatever is free. */
  readonly queueWaitMs: number;
  /** Refused when it is submitted. */
  readonly refusalRate: number;
  /** Taken, but never comes to life. */
  readonly failureRate: number;
  readonly preemptionRate: number;
  /** One of its nodes goes away, and is back after `repairMs`. */
  readonly nodeLossRate: number;
  /** The mean time from a job's start to its preemption or the loss of its node. */
  readonly troubleAfterMs: number;
  readonly repairMs: number;
  /** How much later than its walltime a job is ended. */
  readonly walltimeDelayMs: number;
  /** Between the polite and the hard end. */
  readonly graceMs: number;
  readonly seed: number;
}

/** One machine's worth of cluster that gives no trouble. */
export const QUIET: Simulation = {
  nodes: 2,
  coresPerNode: 1,
  partitions: ["default"],
  queueWaitMs: 0,
  refusalRate: 0,
  failureRate: 0,
  preemptionRate: 0,
  nodeLossRate: 0,
  troubleAfterMs: 60_000,
  repairMs: 60_000,
  walltimeDelayMs: 0,
  graceMs: 5000,
  seed: 1,
};

/** What clusters.yaml says; without a word about cores the nodes share those of this machine. */
export const simulationOf = (values: SimulationValues, machineCores: number): Simulation => {
  const ms = (seconds: number | undefined, otherwise: number): number =>
    seconds === undefined ? otherwise : Math.round(seconds * 1000);
  const nodes = values.nodes ?? QUIET.nodes;
  return {
    nodes,
    coresPerNode: values.coresPerNode ?? Math.max(1, Math.floor(machineCores / nodes)),
    partitions: values.partitions ?? QUIET.partitions,
    queueWaitMs: ms(values.queueWait, QUIET.queueWaitMs),
    refusalRate: values.refusalRate ?? QUIET.refusalRate,
    failureRate: values.failureRate ?? QUIET.failureRate,
    preemptionRate: values.preemptionRate ?? QUIET.preemptionRate,
    nodeLossRate: values.nodeLossRate ?? QUIET.nodeLossRate,
    troubleAfterMs: ms(values.troubleAfter, QUIET.troubleAfterMs),
    repairMs: ms(values.repairTime, QUIET.repairMs),
    walltimeDelayMs: ms(values.walltimeDelay, QUIET.walltimeDelayMs),
    graceMs: ms(values.killAfter, QUIET.graceMs),
    seed: values.seed ?? QUIET.seed,
  };
};

/** Of a cluster of this type. */
export const simulationOfCluster = ({ own }: ClusterConfig): Simulation =>
  simulationOf((own as SimulatedCluster).simulation ?? {}, availableParallelism());
