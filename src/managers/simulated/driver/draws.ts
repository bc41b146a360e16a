/**
 * Chance, made only of a seed, a job's number and a purpose: a history does not depend on how often anyone looks, and
 * one more draw for a new purpose changes none of the others.
 */
const mix = (value: number): number => {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  return (x ^ (x >>> 16)) >>> 0;
};

/** At least 0, less than 1. */
export const draw = (seed: number, job: number, purpose: string): number => {
  let hash = mix(seed ^ 0x9e3779b9);
  for (const value of [job, ...purpose].map((part) => (typeof part === "number" ? part : part.charCodeAt(0))))
    hash = mix(hash ^ (value + 0x9e3779b9 + (hash << 6) + (hash >>> 2)));
  return hash / 2 ** 32;
};

/** A duration whose mean is given: mostly short, sometimes long, never longer than ten times the mean. */
export const drawDuration = (mean: number, seed: number, job: number, purpose: string): number =>
  Math.round(Math.min(10 * mean, -mean * Math.log(1 - draw(seed, job, purpose))));
