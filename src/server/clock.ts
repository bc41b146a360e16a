/**
 * The server's time: wall-clock milliseconds at its start plus what a monotonic clock has counted since (rule 10).
 * A clock that steps changes neither leases nor delays nor the order of times in the journal.
 */
export type Clock = () => number;

export const createClock = (): Clock => {
  const start = Date.now() - performance.now();
  return () => start + performance.now();
};
