import type { FleetConfig } from "../config/fleet-keys.ts";
import type { QueueJob } from "../config/queue-job.ts";
import type { Lifetime } from "../core/lifetime.ts";
import type { Resources } from "../core/resources.ts";
import type { Manager } from "../managers/manager.ts";
import type { JobRequest, Provider } from "../managers/provider.ts";

/** What a queue says about its pilots, whatever starts them, under the names of clusters.yaml. */
type OfQueue = Pick<QueueJob, "nodes" | "walltime" | "signal" | "signalBefore">;

export const ofQueue = ({ nodes, walltime, signal, signalBefore }: QueueJob): OfQueue => ({
  nodes,
  signal,
  signalBefore,
  ...(walltime === undefined ? {} : { walltime }),
});

/** The pilots of one queue: what they are, how many there should be, and how one is made. */
export interface Fleet extends OfQueue, Partial<Pick<QueueJob, "jobNamePrefix" | "cleanup">> {
  readonly cluster: string;
  readonly queue: string;
  /** The manager whose words describe its jobs' states. */
  readonly manager?: Manager;
  /** One object per cluster: the fleets that share it share its polls. */
  readonly provider: Provider;
  readonly policy: FleetConfig;
  /**
   * What one node offers to tasks, in units, as far as the queue says; undefined: nothing is known until an agent has
   * connected, and until then pilots start one at a time.
   */
  readonly offer: Resources | undefined;
  /**
   * Asking about jobs is free, as on this machine: the keeper asks whenever something may have ended, not once a
   * period.
   */
  readonly prompt?: boolean;
  /** How long a silent agent keeps its tasks while its pilot seems to live. */
  readonly leaseMs: number;
  /**
   * Makes the job of a pilot: writes its script and whatever else it needs into `directory`, which exists and is its own.
   * Submits nothing. May be called again for another pilot at the same time.
   */
  prepare(pilot: PilotStart): Promise<JobRequest>;
  /** Files in `directory` (or absolute) with what a pilot's job printed, stdout first: shown when it did not start. */
  readonly outputs?: (pilot: { readonly jobName: string; readonly directory: string }) => readonly string[];
  /** For managers: places the agents' bundle where nodes can read it, and says its name. */
  readonly bundle?: () => Promise<string>;
  /** A pilot's own directory, if it is not the one of its name in the home's `jobs/`. */
  readonly directoryOf?: (jobName: string) => string;
}

export interface PilotStart {
  readonly id: number;
  /** Unique; starts with the home's prefix, `slipway-HASH-` unless the fleet has one of its own. */
  readonly jobName: string;
  readonly directory: string;
  /** For `AgentSettings.lifetime`; undefined: the pilot has no end. */
  readonly lifetime: Lifetime | undefined;
}
