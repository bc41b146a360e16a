import type { WhyView } from "../api/schemas.ts";
import { formatDuration } from "../core/quantities.ts";
import type { Carrier } from "./task-jobs.ts";
import { nativeIdOf } from "./task-jobs.ts";
import type { ManagerSays } from "./why.ts";

/** Why a task that is a job of its own is not running. */

/** The manager said no. */
export interface Refusal {
  /** In its own words. */
  readonly words: string;
  /** Milliseconds until it is tried again. */
  readonly inMs: number;
  /** It spoke of a limit: tried until there is room. Otherwise tasks fail after some tries in a row. */
  readonly limit: boolean;
}

export interface JobSurroundings {
  readonly cluster: string;
  /** Whether clusters.yaml still has it. */
  readonly declared: boolean;
  /** Why nothing at all is placed now: the disk is full, the server stops. */
  readonly blocked: string | null;
  /** Why its cluster's manager cannot be used, or null. */
  readonly unusable: string | null;
  readonly refused: Refusal | null;
  /** The job that carries it now. */
  readonly carrier: Carrier | undefined;
  readonly says: ManagerSays | null;
  /** How many of its shape wait in the manager, and how many may. */
  readonly queued: number;
  readonly most: number;
  /** How many tasks stand before it in Slipway; undefined: it is asked for many. */
  readonly before: number | undefined;
}

const why = (cause: string, detail: string, remedy: string): WhyView => ({ cause, detail, remedy });

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** `job 1234 (flow:solve-0f…) of cluster hpc`. */
export const jobText = (carrier: Carrier): string => {
  const native = nativeIdOf(carrier);
  const { cluster, jobName } = carrier.job;
  return `job ${native === null ? jobName : `${native} (${jobName})`} of cluster ${cluster}`;
};

/** It waits in the manager, or is on its way there. */
const whyCarried = (around: JobSurroundings, carrier: Carrier, what: string): WhyView => {
  const { unusable, says } = around;
  if (unusable !== null)
    return why(
      "cluster-unreachable",
      `${what}; it is ${jobText(carrier)}, whose manager does not answer: ${unusable}`,
      `Nothing is lost: Slipway asks again. \`slipway clusters check ${around.cluster}\` says what to fix.`,
    );
  if (carrier.element.state === "requested")
    return why(
      "job-requested",
      `${what}; it is being handed to cluster ${around.cluster} as ${carrier.job.jobName}`,
      "Nothing to do: the manager's answer is awaited.",
    );
  if (says === null)
    return why(
      "job-queued",
      `${what}; ${jobText(carrier)} waits in the workload manager`,
      "It starts when the manager has room for it; `slipway jobs list` shows it.",
    );
  return why(
    "job-queued",
    `${what}; ${jobText(carrier)} is ${says.text}`,
    says.remedy ?? "It starts when the manager has room for it; `slipway jobs list` shows it.",
  );
};

/** Nobody can ask the manager of such a cluster, or hand it anything. */
const whyUndeclared = ({ cluster, carrier }: JobSurroundings, what: string): WhyView =>
  why(
    "cluster-undeclared",
    carrier === undefined
      ? `${what}; its cluster ${cluster} is no longer in clusters.yaml`
      : `${what}; it is ${jobText(carrier)}, which is no longer in clusters.yaml: nobody asks its manager about the job`,
    carrier === undefined
      ? `Put ${cluster} back into clusters.yaml and start the server again, or cancel the task.`
      : `Put ${cluster} back into clusters.yaml and start the server again: the job is then found by its name. Cancelling the task leaves the job in the manager.`,
  );

/** `what`: what is known of it so far, as the beginning of a sentence. */
export const whyJob = (around: JobSurroundings, what: string): WhyView => {
  const { carrier, blocked, unusable, refused, cluster, queued, most, before } = around;
  if (!around.declared) return whyUndeclared(around, what);
  if (carrier !== undefined) return whyCarried(around, carrier, what);
  if (blocked !== null)
    return why("blocked", `${what}; no jobs are submitted: ${blocked}`, "It continues by itself when that is over.");
  if (unusable !== null)
    return why(
      "cluster-unreachable",
      `${what}; no job can be submitted to cluster ${cluster}: ${unusable}`,
      `\`slipway clusters check ${cluster}\` says what to fix; it goes on by itself when the manager answers.`,
    );
  if (refused !== null) {
    const left = formatDuration(Math.max(1, Math.ceil(refused.inMs / 1000)));
    return why(
      "job-refused",
      `${what}; cluster ${cluster} refused its job: ${refused.words}; it is tried again in ${left}`,
      refused.limit
        ? "It speaks of a limit: there is room when other jobs of yours end. A smaller n_max_queued_jobs in clusters.yaml keeps below it."
        : "Change what the task asks for, or the queue in clusters.yaml; after three refusals in a row its tasks fail with these words.",
    );
  }
  const ahead =
    before === undefined
      ? ""
      : before === 0
        ? "; it is the next"
        : `; ${plural(before, "task")} stand${before === 1 ? "s" : ""} before it`;
  if (queued >= most)
    return why(
      "job-held",
      `${what}; Slipway keeps it back: ${plural(queued, "job")} like it wait${queued === 1 ? "s" : ""} in cluster ${cluster}, and no more than ${most} may (n_max_queued_jobs)${ahead}`,
      "It is submitted when one of those starts. A higher --priority goes first; a larger n_max_queued_jobs in clusters.yaml lets more wait there.",
    );
  const when =
    before === undefined || before === 0
      ? `about to be submitted to cluster ${cluster}`
      : `submitted to cluster ${cluster} in its turn`;
  return why("job-held", `${what}; it is ${when}${ahead}`, "Nothing to do; `slipway jobs list` shows what is there.");
};
