// Graphs of tasks: layers with random edges, and the shapes of real workflows. A task has a template, seconds and the tasks
// it waits for; those of a file come in the order in which a generator of the workflow writes them: level by level.
import { createBuilder } from "./builder.mjs";
import { randomOf, spreadOf } from "./random.mjs";
import { cybershake, epigenomics, ligo, montage, sipht } from "./workflows.mjs";

/** Each task waits for one to three of the layer before; ten templates whose times differ widely. */
const layered = (size, seed) => {
  const { random, add, many, tasks } = createBuilder(seed);
  const medians = many(10, () => 2 + 120 * random() ** 3);
  let before = [];
  while (tasks.length < size) {
    const width = Math.min(size - tasks.length, 1 + Math.floor((random() * size) / 10));
    before = many(width, () => {
      const after =
        before.length === 0 ? [] : many(1 + random() * 2, () => before[Math.floor(random() * before.length)]);
      const template = Math.floor(random() * 10);
      return add(`t${template}`, medians[template], 0.5, [...new Set(after)]);
    });
  }
  return tasks;
};

export const FAMILIES = { layered, montage, epigenomics, cybershake, ligo, sipht };

/** Both the longest path and the work over all cores take at least that long, in seconds. */
export const lowerBound = (tasks, cores) => {
  const ends = new Float64Array(tasks.length);
  let [longest, work] = [0, 0];
  for (const [i, { seconds, after }] of tasks.entries()) {
    for (const before of after) ends[i] = Math.max(ends[i], ends[before]);
    ends[i] += seconds;
    longest = Math.max(longest, ends[i]);
    work += seconds;
  }
  return Math.max(longest, work / cores);
};

/** What tasks are expected to take in seconds, as it is learned: from the same tasks in an earlier run, or from their template. */
export const EXPECTED = {
  /** What each took the last time, which differs by about a tenth. */
  again: (tasks, seed) => {
    const spread = spreadOf(randomOf(seed));
    return tasks.map(({ seconds }) => spread(seconds, 0.1));
  },
  /** Other items than before: the mean of their template. */
  new: (tasks) => {
    const sums = new Map();
    for (const { template, seconds } of tasks) {
      const [sum, count] = sums.get(template) ?? [0, 0];
      sums.set(template, [sum + seconds, count + 1]);
    }
    return tasks.map(({ template }) => sums.get(template)[0] / sums.get(template)[1]);
  },
};
