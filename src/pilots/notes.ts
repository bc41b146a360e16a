import type { PilotId } from "../core/ids.ts";

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
  /** What was decided the last time something was: a sentence. */
  decision: string | null;
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
  decision: null,
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
