/**
 * The time in which an agent reports when its tasks began and ended: its server's, as the last welcome gave it, plus
 * what a monotonic clock has counted since (rule 10). So a wall clock that steps or is wrong, on the node or on the
 * server, makes no attempt longer or shorter, and reports of different nodes fit together. Before the first welcome it
 * is the node's own time.
 */
export interface NodeClock {
  /** Now, in whole epoch milliseconds. */
  now(): number;
  /** The time at which the monotonic clock (`performance.now()`) showed this value. */
  at(monotonic: number): number;
  /** What the server's clock says now; undefined if the server does not send it. */
  adopt(serverNow: number | undefined): void;
}

export const createNodeClock = (): NodeClock => {
  let anchor = Date.now() - performance.now();
  return {
    now: () => Math.floor(anchor + performance.now()),
    at: (monotonic) => anchor + monotonic,
    adopt: (serverNow) => {
      if (serverNow !== undefined && Number.isFinite(serverNow) && serverNow > 0)
        anchor = serverNow - performance.now();
    },
  };
};

/**
 * The clocks of two processes that were set when they started agree within this, unless the wall clock stepped in
 * between.
 */
const AGREE_MS = 10_000;

/**
 * When an attempt began and ended, from its spawner's report: that clock does not step either, but was set elsewhere.
 */
export const createExitTimes = (
  clock: NodeClock,
): ((
  spawner: object,
  exit: { readonly startedAt: number; readonly endedAt: number },
) => { started: number; finished: number }) => {
  /** From the spawner's clock to our monotonic one. */
  const skews = new WeakMap<object, number>();
  return (spawner, { startedAt, endedAt }) => {
    const now = performance.now();
    if (endedAt === 0) return { started: clock.at(now), finished: clock.at(now) };
    let skew = skews.get(spawner);
    if (skew === undefined) {
      const seen = now - endedAt;
      skew = Math.abs(seen + performance.timeOrigin) < AGREE_MS ? -performance.timeOrigin : seen;
      skews.set(spawner, skew);
    }
    const finished = clock.at(Math.min(now, endedAt + skew));
    return { started: finished - Math.max(0, endedAt - startedAt), finished };
  };
};
