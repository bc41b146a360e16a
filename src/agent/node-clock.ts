/**
 * The time in which an agent tells when its tasks began and ended: its server's, as the last welcome said it, plus what
 * a monotonic clock has counted since (rule 10). So a wall clock that steps, here or there, or that is wrong on this node,
 * makes no attempt longer or shorter, and what different nodes tell fits together. Before the first welcome it is the
 * node's own.
 */
export interface NodeClock {
  /** Now, in whole epoch milliseconds. */
  now(): number;
  /** When the monotonic clock (`performance.now()`) stood there. */
  at(monotonic: number): number;
  /** What the server's clock says now; undefined from a server that does not tell. */
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

/** The clocks of two processes that were set at their starts agree to this, unless the wall clock stepped in between. */
const AGREE_MS = 10_000;

/** When an attempt began and ended, from what its spawner told: a clock that does not step either, but is set elsewhere. */
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
