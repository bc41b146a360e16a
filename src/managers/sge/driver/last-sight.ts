import type { JobStatus } from "../../provider.ts";
import { type SgeRow, statusOfRow } from "./parse.ts";

/**
 * What was last seen of jobs, and how those ended that Grid Engine no longer lists. Accounting has no record of a job that
 * was deleted before it ran, and may have that of another only a while after its end: then what was seen has to tell.
 */
export interface LastSight {
  /** What is known of a job that has not ended; undefined: it was not seen since the start. */
  of(id: string): Sight | undefined;
  /** Submitted, or found in a listing. */
  named(id: string, name: string): Sight;
  /** Found alive in a listing; how it does, with what else is known. */
  seen(row: SgeRow): JobStatus;
  /** Grid Engine has accepted our order to delete it. */
  deleted(id: string): void;
  /** Kept, for whoever asks again. */
  ended(id: string, status: JobStatus): JobStatus;
  endOf(id: string): JobStatus | undefined;
  /** Of one that accounting does not know. */
  withoutRecord(id: string, isListedAsFinished: boolean): JobStatus;
}

export interface Sight {
  readonly name: string;
  /** When it was first missed in the listing. */
  gone?: number;
  dying: boolean;
  wasActive: boolean;
  /** It stood in error, with this reason. */
  error?: string;
  reason?: string;
}

/** The record may come later than the job's end: how long to keep a job that was last seen alive. */
const RECORD_PATIENCE_MS = 30_000;
const MOST_ENDED = 10_000;

export const createLastSight = (now: () => number): LastSight => {
  const sights = new Map<string, Sight>();
  const ends = new Map<string, JobStatus>();

  const named: LastSight["named"] = (id, name) => {
    const sight = sights.get(id) ?? { name, dying: false, wasActive: false };
    sights.set(id, sight);
    return sight;
  };
  const ended: LastSight["ended"] = (id, status) => {
    sights.delete(id);
    if (ends.size >= MOST_ENDED) ends.delete(ends.keys().next().value!);
    ends.set(id, status);
    return status;
  };
  const isGivenUp = ({ gone }: Sight): boolean => gone !== undefined && now() - gone > RECORD_PATIENCE_MS;

  return {
    of: (id) => sights.get(id),
    named,
    seen: (row) => {
      const status = statusOfRow(row);
      const sight = named(row.id, row.name);
      delete sight.gone;
      if (status.state === "active" || status.state === "suspended") sight.wasActive = true;
      if (row.state.includes("d")) sight.dying = true;
      const reason = status.state === "queued" || status.state === "held" ? sight.reason : undefined;
      const stuck = row.state.includes("E") && sight.error !== undefined;
      return { ...status, ...(reason === undefined ? {} : { reason }), ...(stuck ? { stuck } : {}) };
    },
    deleted: (id) => {
      const sight = sights.get(id);
      if (sight !== undefined) sight.dying = true;
    },
    ended,
    endOf: (id) => ends.get(id),
    withoutRecord: (id, isListedAsFinished) => {
      const sight = sights.get(id);
      if (sight?.error !== undefined)
        return ended(id, { state: "ended", raw: "gone", outcome: "start-failed", reason: sight.error });
      // what was deleted before it ran never reaches the accounting
      if (isListedAsFinished && sight?.wasActive !== true)
        if (sight === undefined || sight.dying || isGivenUp(sight))
          return ended(id, { state: "ended", raw: "z", outcome: "cancelled", reason: "deleted before it started" });
      if (sight === undefined || isGivenUp(sight))
        return ended(id, { state: "ended", raw: "gone", outcome: sight?.dying === true ? "cancelled" : "unknown" });
      sight.gone ??= now();
      return { state: "unknown", raw: "gone", reason: "not listed any more; its record is awaited" };
    },
  };
};
