import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerJob } from "./ledger.ts";
import type { JobManager } from "./managers.ts";

const ROUNDS = 10;
const PAUSE_MS = 1000;

export interface JobsToEnd {
  readonly manager: JobManager;
  /** All that is known by id. */
  readonly jobs: readonly LedgerJob[];
  readonly jobName: string;
  /** A submission may be under way whose answer nobody reads: its job is found by its name a moment later. */
  readonly lookTwice?: boolean;
}

/** Those that live: by id, and by name for ids that got lost. */
const living = async ({ manager, jobs, jobName }: JobsToEnd): Promise<LedgerJob[]> => {
  const left = new Map<string, LedgerJob>();
  if (manager.poll !== undefined && jobs.length > 0) {
    const states = await manager.poll(jobs.map(({ id }) => id));
    for (const job of jobs) if (states.get(job.id)?.state !== "ended") left.set(job.id, job);
  }
  for (const { nativeId, name } of (await manager.list?.(jobName)) ?? [])
    if (name === jobName) left.set(nativeId, { id: nativeId, cancel: null });
  return [...left.values()];
};

/**
 * Cancels all jobs of a wrapper and sees to it that they are gone. Resolves with those that may be left, when the manager
 * does not answer or does not end them.
 */
export const endJobs = async (what: JobsToEnd): Promise<readonly LedgerJob[]> => {
  const { manager, jobs, lookTwice = false } = what;
  if (manager.poll === undefined) {
    await manager.cancel(jobs).catch(() => undefined);
    return [];
  }
  let left: readonly LedgerJob[] = jobs;
  let clean = 0;
  for (let round = 0; round < ROUNDS; round++) {
    if (round > 0) await sleep(PAUSE_MS);
    try {
      left = await living(what);
      clean = left.length === 0 ? clean + 1 : 0;
      if (clean > (lookTwice ? 1 : 0)) return [];
      if (left.length > 0) await manager.cancel(left);
    } catch {
      // it gives no answer: it is asked again
      clean = 0;
    }
  }
  return left;
};
