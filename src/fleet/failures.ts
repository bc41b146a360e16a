import type { FleetPolicy, Starts } from "./snapshot.ts";

/** What to do when pilots end without an agent ever connecting. */

/** Seconds to wait after n failed starts in a row: never a hot loop of submissions. */
export const backoff = (failures: number): number => (failures === 0 ? 0 : Math.min(300, 2 ** Math.min(failures, 9)));

/** Seconds that remain of the pause after the last failure. */
export const pauseLeft = ({ inARow, sinceLast }: Starts): number => Math.max(0, backoff(inARow) - sinceLast);

/**
 * Whether waiting tasks are given up: never (`pause`), when all pilots ever started, at least `init` of them, have
 * failed (`simple`), or when the last `window` of them have (`windowed`).
 */
export const givesUp = ({ errorHandler, init, window }: FleetPolicy, { total, failed, inARow }: Starts): boolean => {
  if (errorHandler === "pause") return false;
  return errorHandler === "simple" ? failed === total && total >= Math.max(1, init) : inARow >= window;
};
