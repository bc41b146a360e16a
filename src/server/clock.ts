import type { StartMark, State } from "../core/state.ts";

/**
 * The server's time: wall-clock milliseconds at its start plus what a monotonic clock has counted since (rule 10).
 * A clock that steps changes neither leases nor delays nor the order of times in the journal.
 */
export type Clock = () => number;

export const createClock = (now: number = Date.now()): Clock => {
  const start = now - performance.now();
  return () => start + performance.now();
};

/** Smaller differences come from slewing, or are beyond what a boot's own clock can tell. */
const AGREE_MS = 2000;

/**
 * What a server's clock says when it starts: the wall clock. But while runs are under way that a previous server in
 * this same boot knew, that server's clock continues, however much the wall clock was set in between. So all their
 * times come from one clock.
 */
export const clockAtStart = (
  state: State,
  here: Pick<StartMark, "bootId" | "uptimeMs">,
  wall: number = Date.now(),
): number => {
  const { lastStart, live } = state;
  if (lastStart === null || here.bootId === "" || lastStart.bootId !== here.bootId) return wall;
  const due = lastStart.at + (here.uptimeMs - lastStart.uptimeMs);
  const isSame = Math.abs(due - wall) <= AGREE_MS || here.uptimeMs < lastStart.uptimeMs;
  return isSame || live.size === 0 ? wall : due;
};
