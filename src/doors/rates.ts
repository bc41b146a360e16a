/**
 * How often each of many may do something: so many at once, and so many a second from then on. Only so many are kept
 * apart; one more, and the one that was quiet for longest is forgotten.
 */
export interface Rates {
  /** Counts one; false: it was one too many. */
  take(who: string): boolean;
  readonly size: number;
}

export interface RateLimit {
  readonly atOnce: number;
  readonly aSecond: number;
}

const MOST_KEPT = 1000;

export const createRates = ({ atOnce, aSecond }: RateLimit, clock: () => number): Rates => {
  // in order of their last use
  const left = new Map<string, { amount: number; at: number }>();
  return {
    take: (who) => {
      const now = clock();
      const known = left.get(who) ?? { amount: atOnce, at: now };
      const amount = Math.min(atOnce, known.amount + ((now - known.at) / 1000) * aSecond);
      const isAllowed = amount >= 1;
      left.delete(who);
      left.set(who, { amount: isAllowed ? amount - 1 : amount, at: now });
      if (left.size > MOST_KEPT) left.delete(left.keys().next().value!);
      return isAllowed;
    },
    get size() {
      return left.size;
    },
  };
};
