import type { Lifetime } from "../core/lifetime.ts";
import type { PilotId } from "../core/ids.ts";

/**
 * How long a pilot lives. In seconds, with the walltime W:
 *
 *   stagger = min(4 min, W/10), or as configured up to W/2   each pilot has its own share of it, from 0 to 1
 *   lifetime = W − stagger − kept                           from lifetime + share·stagger on, it takes nothing new
 *   kept = 1 min, more when `signal-before` needs it; a quarter of W when that is less
 *   end = W − min(15 s, W/12)                               what still runs is ended and its results are sent
 *   signal = end − min(signal-before, W/4)
 *
 * The share follows from the pilot's number, so that pilots that started together do not end together.
 */

export interface LifetimeInput {
  readonly walltime: number | undefined;
  readonly lifetime?: number | undefined;
  readonly stagger?: number | undefined;
  readonly signal: string;
  readonly signalBefore: number;
}

const KEPT = 60;
const MOST_STAGGER = 240;
const LAST_WORDS = 15;
/** Multiples of the golden ratio spread evenly, no matter how many there are. */
const GOLDEN = 0.618_033_988_749_894_9;

const shareOf = (pilot: PilotId): number => (pilot * GOLDEN) % 1;

const ms = (seconds: number): number => Math.round(seconds * 1000);

export const lifetimeOf = (pilot: PilotId, input: LifetimeInput): Lifetime | undefined => {
  const { walltime, signal } = input;
  if (walltime === undefined) {
    if (input.lifetime === undefined) return undefined;
    const drain = input.lifetime + (input.stagger ?? 0) * shareOf(pilot);
    return { drainMs: ms(drain), signalMs: null, endMs: null, signal };
  }
  const lastWords = Math.min(LAST_WORDS, walltime / 12);
  const before = Math.min(input.signalBefore, walltime / 4);
  const kept = Math.max(Math.min(KEPT, walltime / 4), before + lastWords);
  const stagger = Math.min(input.stagger ?? Math.min(MOST_STAGGER, walltime / 10), walltime / 2);
  const lifetime = input.lifetime ?? walltime - stagger - kept;
  const end = walltime - lastWords;
  const signalled = end - before;
  const drain = Math.min(Math.max(lifetime, 0) + stagger * shareOf(pilot), signalled);
  return { drainMs: ms(drain), signalMs: ms(signalled), endMs: ms(end), signal };
};
