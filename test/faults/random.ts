/** Numbers that depend on a seed alone: the same seed gives the same schedule on every machine. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** Whole, both ends included. */
  int(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
  /** One of several, by weight. */
  weighed<T>(choices: readonly (readonly [weight: number, value: T])[]): T;
  /** Another sequence that depends on this seed and a name: what one part draws does not shift another's numbers. */
  fork(name: string): Random;
}

/** mulberry32: 32 bits of state are plenty for schedules. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (choices) => choices[int(0, choices.length - 1)]!,
    weighed: (choices) => {
      let left = next() * choices.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, value] of choices) {
        left -= weight;
        if (left < 0) return value;
      }
      return choices.at(-1)![1];
    },
    fork: (name) => {
      let hash = seed ^ 0x9e3779b9;
      for (const letter of name) hash = Math.imul(hash ^ letter.codePointAt(0)!, 0x01000193);
      return createRandom(hash);
    },
  };
};
