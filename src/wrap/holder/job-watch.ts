import type { JobStatus } from "../../managers/provider.ts";
import type { HeadJob, HeadTick } from "../head.ts";
import { afterFailure, NO_FAILURES, type Replacements } from "../plan/replacements.ts";
import type { LedgerJob } from "./ledger.ts";
import type { JobManager } from "./managers.ts";

/**
 * Asks the manager what dask-jobqueue never asks. One listing a period, and only while a job is not accounted for: one
 * whose worker has not connected, one whose worker is gone, or one that was let go and may live on.
 *
 *   submitted ── its worker connects ──► connected ── gone ──► let go by Dask ── ended ──► forgotten
 *       │                                    └─ ended, and Dask still believes in it ──► replaced (a ghost)
 *       └─ ended, or refused ──► reported, and replaced after a pause that grows
 */
export interface JobWatch {
  submitted(job: HeadJob): void;
  refused(name: string, detail: string): void;
  tick(tick: HeadTick): void;
  /** What the manager said of a job that has not connected, when it was last asked. */
  said(id: string): string | undefined;
  /** All that may live. */
  known(): readonly LedgerJob[];
}

export interface JobWatchOptions {
  readonly manager: JobManager | undefined;
  readonly replace: (names: readonly string[]) => void;
  /** What went wrong; undefined: all is well again. */
  readonly report: (problem: string | undefined) => void;
  /** The jobs that may live have changed. */
  readonly record: (jobs: readonly LedgerJob[]) => void;
  /** The last that a job printed, where that can be found. */
  readonly lastWords: (id: string) => Promise<string>;
  readonly now?: () => number;
  readonly periodMs?: number;
}

interface Job {
  readonly id: string;
  readonly name: string;
  readonly cancel: string | null;
  readonly since: number;
  isConnected: boolean;
  wasConnected: boolean;
  releasedAt?: number;
  said?: string | undefined;
}

const PERIOD_MS = 5000;
/** A job is not asked about before it could have connected. */
const GRACE_MS = 2000;

const endingOf = ({ raw, outcome, exitCode, reason }: JobStatus): string =>
  [
    raw,
    outcome === undefined || outcome === "unknown" ? "" : outcome,
    exitCode === undefined ? "" : `exit status ${exitCode}`,
    reason ?? "",
  ]
    .filter((word, at, all) => word !== "" && all.indexOf(word) === at)
    .join(", ");

export const createJobWatch = (options: JobWatchOptions): JobWatch => {
  const { manager, replace, report, record, lastWords, now = () => performance.now(), periodMs = PERIOD_MS } = options;
  const jobs = new Map<string, Job>();
  /** Places to free, and when. */
  const due = new Map<string, number>();
  let failing: Replacements = NO_FAILURES;
  let askedAt = -Infinity;
  let isAsking = false;

  const known = (): LedgerJob[] => [...jobs.values()].map(({ id, cancel }) => ({ id, cancel }));
  const forget = (id: string): void => {
    if (jobs.delete(id)) record(known());
  };

  const failed = (name: string, problem: string): void => {
    // several of one batch are one failure: they were submitted for the same reason
    if (due.size === 0) failing = afterFailure(failing, now());
    due.set(name, failing.notBefore);
    const seconds = Math.round((failing.notBefore - now()) / 1000);
    report(`${problem}; ${seconds <= 0 ? "submitted again" : `submitted again in ${seconds} s`}`);
  };

  const judge = async (job: Job, status: JobStatus): Promise<void> => {
    if (job.isConnected && job.releasedAt === undefined) return;
    if (status.state !== "ended") {
      if (job.releasedAt !== undefined && now() - job.releasedAt > periodMs)
        // Dask asked for its end and was not heard
        await manager!.cancel([{ id: job.id, cancel: job.cancel }]);
      else if (status.stuck === true) report(`job ${job.id} is stuck: ${status.reason ?? status.raw}`);
      job.said = status.state === "active" ? undefined : (manager!.says?.(status) ?? status.raw);
      return;
    }
    forget(job.id);
    if (job.releasedAt !== undefined) return;
    if (job.wasConnected) return replace([job.name]);
    const words = await lastWords(job.id);
    failed(
      job.name,
      `job ${job.id} ended before its worker connected (${endingOf(status)})${words === "" ? "" : `: ${words}`}`,
    );
  };

  const ask = async (doubtful: readonly Job[]): Promise<void> => {
    isAsking = true;
    try {
      const states = await manager!.poll!(doubtful.map(({ id }) => id));
      for (const job of doubtful) {
        const status = states.get(job.id);
        if (status !== undefined && jobs.has(job.id)) await judge(job, status);
      }
    } catch (error) {
      report((error as Error).message);
    } finally {
      askedAt = now();
      isAsking = false;
    }
  };

  const look = (tick: HeadTick): void => {
    const present = new Map(tick.jobs.flatMap((job) => (job.id === null ? [] : [[job.id, job] as const])));
    for (const job of jobs.values()) {
      const seen = present.get(job.id);
      const connects = seen?.connected === true && !job.wasConnected;
      job.isConnected = seen?.connected === true;
      job.wasConnected ||= job.isConnected;
      // a job is told of before Dask has entered it
      if (seen === undefined && now() - job.since > GRACE_MS) job.releasedAt ??= now();
      if (connects) {
        failing = NO_FAILURES;
        report(undefined);
      }
      if (job.releasedAt !== undefined && manager?.poll === undefined) forget(job.id);
    }
  };

  return {
    known,
    said: (id) => (jobs.get(id)?.isConnected === true ? undefined : jobs.get(id)?.said),
    submitted: ({ name, id, cancel }) => {
      jobs.set(id, { id, name, cancel, since: now(), isConnected: false, wasConnected: false });
      record(known());
    },
    refused: (name, detail) => failed(name, `a job was refused: ${detail}`),
    tick: (tick) => {
      look(tick);
      const ripe = [...due].filter(([, at]) => at <= now()).map(([name]) => name);
      for (const name of ripe) due.delete(name);
      if (ripe.length > 0) replace(ripe);
      if (manager?.poll === undefined || isAsking || now() - askedAt < periodMs) return;
      const doubtful = [...jobs.values()].filter(
        (job) => (!job.isConnected || job.releasedAt !== undefined) && now() - job.since > GRACE_MS,
      );
      if (doubtful.length > 0) void ask(doubtful);
    },
  };
};
