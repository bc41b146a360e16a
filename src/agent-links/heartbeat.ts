/**
 * How often agents show that they live: every five seconds, or less often where there are so many that the server would
 * hear nothing else, at most 500 in a second. Each link keeps what its agent was told; an agent that was told something
 * else by now hears of it with the next answer.
 */

const SHORTEST_MS = 5000;
const PER_SECOND = 500;

/** An agent that says nothing for this many of its heartbeats is silent. */
const SILENT_HEARTBEATS = 4;

/** One that says nothing for this many is looked at more often: well before it is silent, even between two looks. */
export const LATE_HEARTBEATS = 2;

/** Whole seconds, so that an agent more or less changes nothing. */
export const heartbeatFor = (agents: number): number => Math.max(SHORTEST_MS, Math.ceil(agents / PER_SECOND) * 1000);

export const isSilent = (silenceMs: number, heartbeatMs: number): boolean =>
  silenceMs > SILENT_HEARTBEATS * heartbeatMs;
