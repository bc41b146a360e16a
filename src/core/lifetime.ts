/**
 * When a pilot's agents end. All times count from the pilot's start, which its script passes on in SLIPWAY_PILOT_START
 * (epoch seconds, `$(date +%s)` before anything else); without it, from the agent's own start.
 */
export interface Lifetime {
  /** From here on they take nothing new. */
  readonly drainMs: number;
  /** What still runs gets `signal`; null where nothing ends the pilot by force. */
  readonly signalMs: number | null;
  /** What still runs is ended, to run again elsewhere; null in the same case. */
  readonly endMs: number | null;
  readonly signal: string;
}
