/**
 * When a pilot's agents end. All times count from the pilot's start, which its script tells them in
 * SLIPWAY_PILOT_START (epoch seconds, `$(date +%s)` before anything else); without it, from the agent's own start.
 */
export interface Lifetime {
  /** Nothing new is taken. */
  readonly drainMs: number;
  /** What still runs gets `signal`; null where nothing ends the pilot by force. */
  readonly signalMs: number | null;
  /** What still runs is ended, to be run again elsewhere; null likewise. */
  readonly endMs: number | null;
  readonly signal: string;
}
