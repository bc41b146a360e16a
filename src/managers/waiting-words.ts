import type { Manager } from "./manager.ts";
import type { JobStatus } from "./provider.ts";
import { waitingReason } from "./waiting-reason.ts";

/** Why a job has not begun or has stopped: the manager's words, what they mean, and what would help. */
export interface Waiting {
  readonly text: string;
  readonly remedy: string | null;
  /** The manager's own words, and what they mean where that is known. */
  readonly words: string;
  readonly meaning: string | null;
}

/** `queued: PENDING (Priority), jobs with a higher priority are ahead of it`. */
export const waitingOf = (manager: Manager | undefined, { state, raw, reason = "" }: JobStatus): Waiting => {
  const known = waitingReason(manager?.batch?.waiting ?? [], reason === "" ? raw : reason);
  const said = `${state}: ${raw}${reason === "" ? "" : ` (${reason})`}`;
  return {
    text: known === undefined ? said : `${said}, ${known.meaning}`,
    remedy: known?.remedy ?? null,
    words: `${raw}${reason === "" ? "" : ` (${reason})`}`,
    meaning: known?.meaning ?? null,
  };
};
