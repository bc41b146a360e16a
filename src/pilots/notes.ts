import type { PilotId } from "../core/ids.ts";
import type { JobStatus } from "../managers/provider.ts";
import type { Manager } from "../managers/manager.ts";
import { waitingReason } from "../managers/waiting-reason.ts";

/** What a keeper remembers between two looks. None of it outlives the server: the next one finds it out again. */

export interface FleetNotes {
  /** The first look is still to come: `init` applies to it. */
  first: boolean;
  /**
   * Since waiting tasks were last given up: pilots requested, those that never had an agent, and how many of
   * those came last in a row.
   */
  requested: number;
  failed: number;
  inARow: number;
  failedAt: number;
  /** Pilots in a row that lost their agents soon after they had connected. */
  shortLives: number;
  /** Why the last pilots did not start, newest last. */
  readonly failures: string[];
  problem: string | null;
  /** Pilots without a task, and since when; the same for the whole fleet. */
  readonly idleSince: Map<PilotId, number>;
  fleetIdleSince: number | undefined;
  suggested: ReadonlyMap<number, number>;
  /** Seconds that pilots wait in the manager, a moving average. */
  queueWait: number;
}

export const createNotes = (): FleetNotes => ({
  first: true,
  requested: 0,
  failed: 0,
  inARow: 0,
  failedAt: 0,
  shortLives: 0,
  failures: [],
  problem: null,
  idleSince: new Map(),
  fleetIdleSince: undefined,
  suggested: new Map(),
  queueWait: 0,
});

const REMEMBERED = 5;

export const noteFailure = (notes: FleetNotes, text: string): void => {
  notes.failed += 1;
  notes.inARow += 1;
  notes.failedAt = performance.now();
  notes.failures.push(text);
  if (notes.failures.length > REMEMBERED) notes.failures.shift();
};

export const noteSuccess = (notes: FleetNotes, waitedSeconds: number): void => {
  notes.inARow = 0;
  notes.failures.length = 0;
  notes.queueWait = notes.queueWait === 0 ? waitedSeconds : 0.7 * notes.queueWait + 0.3 * waitedSeconds;
};

/** The tasks were given up: later ones get a new try. */
export const forgetFailures = (notes: FleetNotes): void => {
  notes.requested = 0;
  notes.failed = 0;
  notes.inARow = 0;
  notes.failures.length = 0;
};

/** Why a pilot's job has not begun or has stopped: the manager's words, what they mean, and what would help. */
export interface Waiting {
  readonly text: string;
  readonly remedy: string | null;
}

/** `queued: PENDING (Priority), jobs with a higher priority are ahead of it`. */
export const waitingOf = (manager: Manager | undefined, { state, raw, reason = "" }: JobStatus): Waiting => {
  const known = waitingReason(manager?.batch?.waiting ?? [], reason === "" ? raw : reason);
  const said = `${state}: ${raw}${reason === "" ? "" : ` (${reason})`}`;
  return { text: known === undefined ? said : `${said}, ${known.meaning}`, remedy: known?.remedy ?? null };
};
