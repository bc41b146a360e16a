// Numbers that look random and are the same for the same seed.

/** From 0 to 1. */
export const randomOf = (seed) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** Log-normal around a median. */
export const spreadOf = (random) => (median, sigma) =>
  median * Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));

/** Normal, drawn again until it is above nothing. */
export const normalOf = (random) => (mean, deviation) => {
  for (;;) {
    const value = mean + deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    if (value > 0) return value;
  }
};
