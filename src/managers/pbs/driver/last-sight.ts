import type { JobStatus } from "../../provider.ts";
import type { Attributes } from "./parse.ts";
import { statusIfGone } from "./status.ts";

/**
 * How jobs ended that PBS has forgotten, as far as they were seen before. Without history, its default, it forgets a job
 * at once; only a driver that looked while its output was copied, or deleted it, knows more. One that did neither
 * answers `unknown`.
 */
export interface LastSight {
  seen(sequence: string, attributes: Attributes): void;
  /** PBS has accepted our order to delete it. */
  deleted(sequence: string): void;
  /** Of one that is gone. */
  endOf(sequence: string): JobStatus;
}

const UNKNOWN: JobStatus = { state: "ended", raw: "gone", outcome: "unknown" };
/** Whoever asks about a job does so until it has ended: nobody asks about older ones any more. */
const MOST = 5000;

export const createLastSight = (): LastSight => {
  const ends = new Map<string, JobStatus>();
  const keep = (sequence: string, end: JobStatus): void => {
    ends.delete(sequence);
    ends.set(sequence, end);
    if (ends.size > MOST) ends.delete(ends.keys().next().value!);
  };
  return {
    seen: (sequence, attributes) => {
      const end = statusIfGone(attributes);
      if (end !== undefined) keep(sequence, end);
      // put back into its queue, or running again: how its last try ended no longer counts
      else if (ends.get(sequence)?.outcome !== "cancelled") ends.delete(sequence);
    },
    deleted: (sequence) => {
      if (!ends.has(sequence)) keep(sequence, { ...UNKNOWN, outcome: "cancelled" });
    },
    endOf: (sequence) => ends.get(sequence) ?? UNKNOWN,
  };
};
