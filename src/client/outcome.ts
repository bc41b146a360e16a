import type { RunView } from "../api/schemas.ts";

export const isFinalRun = (run: Pick<RunView, "state">): boolean => run.state !== "WAITING" && run.state !== "RUNNING";

/** Tasks that were cancelled although they were wanted: handlers that were not needed do not count. */
export const canceledOf = (run: RunView): number => Math.max(0, (run.counts["CANCELED"] ?? 0) - run.unneeded);

/** Whether every task that was needed is DONE: exit status 0. */
export const succeeded = (run: RunView): boolean =>
  isFinalRun(run) && (run.counts["FAILED"] ?? 0) === 0 && canceledOf(run) === 0;
