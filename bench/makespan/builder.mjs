// Puts a graph together: tasks with random times, and random numbers of them.
import { normalOf, randomOf, spreadOf } from "./random.mjs";

export const createBuilder = (seed) => {
  const random = randomOf(seed);
  const spread = spreadOf(random);
  const normal = normalOf(random);
  const tasks = [];
  const push = (template, seconds, after) => tasks.push({ template, seconds, after }) - 1;
  return {
    random,
    tasks,
    /** Adds a task around a median and returns its number. */
    add: (template, median, sigma, after = []) => push(template, spread(median, sigma), after),
    /** One with a mean and a standard deviation. */
    addNormal: (template, mean, deviation, after = []) => push(template, normal(mean, deviation), after),
    many: (count, make) => Array.from({ length: Math.max(1, Math.round(count)) }, (_, i) => make(i)),
    /** Whole numbers that differ by up to this share either way and come to `total`. */
    parts: (count, total, share) => {
      const weights = Array.from({ length: count }, () => 1 + share * (2 * random() - 1));
      const all = weights.reduce((sum, each) => sum + each, 0);
      let [sum, given] = [0, 0];
      return weights.map((weight) => {
        const before = given;
        given = Math.round(((sum += weight) / all) * total);
        return given - before;
      });
    },
  };
};
