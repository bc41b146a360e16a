import { type Resources, amountOf } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";

/** Tasks that ask for nothing countable still share an agent: at most this many at once. */
const MOST_AT_ONCE = 1024;

/** How many tasks that ask for this fit into these resources at once; 0 if not even one. */
export const concurrency = (capacity: Resources, asks: Resources): number => {
  let most = MOST_AT_ONCE;
  for (const name in asks) {
    const asked = asks[name]!;
    if (asked > 0) most = Math.min(most, Math.floor(amountOf(capacity, name) / asked));
  }
  return most;
};

/** The first resource of which a shape asks for more than there is. */
export const shortage = (
  capacity: Resources,
  shape: Pick<Shape, "resources">,
): { name: string; asked: number; has: number } | undefined => {
  for (const name in shape.resources) {
    const asked = shape.resources[name]!;
    const has = amountOf(capacity, name);
    if (asked > has) return { name, asked, has };
  }
  return undefined;
};

export interface PrefetchPolicy {
  /** What an agent holds beyond its slots should take no longer than this. */
  readonly seconds: number;
  /**
   * Tasks longer than this are not held in advance: a round trip is nothing to them, and what lies at an agent is passed
   * by nothing that becomes ready later and should go first.
   */
  readonly longSeconds: number;
  /** Never more tasks than this. */
  readonly count: number;
}

export const DEFAULT_PREFETCH: PrefetchPolicy = { seconds: 0.5, longSeconds: 1, count: 16_384 };

/**
 * How far beyond its slots an agent may be loaded, in multiples of all its slots, with tasks of a mean duration
 * (milliseconds, -1 unknown). Bounded in expected seconds, not only in count.
 */
export const prefetchLoad = (policy: PrefetchPolicy, meanMs: number, slots: number): number => {
  if (meanMs < 0) return 1;
  if (meanMs > policy.longSeconds * 1000) return 0;
  const wanted = (policy.seconds * 1000) / Math.max(meanMs, 0.001);
  return Math.min(Math.max(wanted, 1), policy.count / slots);
};
