/** How long to wait before the next attempt, in milliseconds: doubled each time, bounded, and never the same for all. */

const FIRST = 400;
const MOST = 15_000;

export const backoff = (failures: number, random: () => number = Math.random): number => {
  const whole = Math.min(MOST, FIRST * 2 ** Math.min(failures, 16));
  return whole * (0.5 + random() / 2);
};
