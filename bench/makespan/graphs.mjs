// Graphs of tasks: layers with random edges, and the shapes of real workflows as WfCommons describes them, with times of the
// size that is published for them. A task has a template, seconds and the tasks it waits for; those of a file come in the
// order in which a generator of the workflow writes them: level by level.
import { randomOf, spreadOf } from "./random.mjs";

const builder = (seed) => {
  const random = randomOf(seed);
  const spread = spreadOf(random);
  const tasks = [];
  return {
    random,
    tasks,
    /** Adds a task and returns its number. */
    add: (template, median, sigma, after = []) => tasks.push({ template, seconds: spread(median, sigma), after }) - 1,
    many: (count, make) => Array.from({ length: Math.max(1, Math.round(count)) }, (_, i) => make(i)),
  };
};

/** Each task waits for one to three of the layer before; ten templates whose times differ widely. */
const layered = (size, seed) => {
  const { random, add, many, tasks } = builder(seed);
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

/** Images are projected, compared where they overlap, fitted together, corrected and added. */
const montage = (size, seed) => {
  const { random, add, many, tasks } = builder(seed);
  const images = (size - 5) / 5;
  const projected = many(images, () => add("mProject", 14, 0.3));
  const differences = many(images * 3, (i) => {
    const one = i % projected.length;
    const other = (one + 1 + Math.floor(random() * 8)) % projected.length;
    return add("mDiffFit", 8, 0.4, [...new Set([projected[one], projected[other]])]);
  });
  const concat = add("mConcatFit", 0.1 * images, 0.1, differences);
  const model = add("mBgModel", 0.2 * images, 0.1, [concat]);
  const corrected = projected.map((image) => add("mBackground", 8, 0.4, [image, model]));
  const table = add("mImgtbl", 0.05 * images, 0.1, corrected);
  const sum = add("mAdd", 0.2 * images, 0.1, [table]);
  add("mViewer", 20, 0.1, [sum]);
  return tasks;
};

/** Lanes of sequences, each cut into chunks that pass through four steps, merged and analysed. */
const epigenomics = (size, seed) => {
  const { random, add, many, tasks } = builder(seed);
  const lanes = Math.max(2, Math.round(Math.sqrt(size) / 4));
  const split = many(lanes, () => add("fastqSplit", 35, 0.2));
  // lanes are of different sizes
  const weights = split.map(() => 0.5 + random());
  const all = weights.reduce((sum, each) => sum + each, 0);
  const chunks = split.flatMap((lane, i) =>
    many(((size - 3 - 2 * lanes) * weights[i]) / all / 4, () => ({ lane: i, last: lane })),
  );
  for (const [name, median, sigma] of [
    ["filterContams", 2.5, 0.4],
    ["sol2sanger", 0.5, 0.4],
    ["fastq2bfq", 1.4, 0.4],
    ["map", 200, 0.6],
  ])
    for (const chunk of chunks) chunk.last = add(name, median, sigma, [chunk.last]);
  const merged = split.map((_, lane) =>
    add(
      "mapMerge",
      11,
      0.3,
      chunks.filter((chunk) => chunk.lane === lane).map(({ last }) => last),
    ),
  );
  const total = add("mapMergeAll", 40, 0.2, merged);
  add("pileup", 55, 0.2, [add("maqIndex", 45, 0.2, [total])]);
  return tasks;
};

/** Strain tensors are extracted, and of each many seismograms are made whose peaks are sought; all are packed. */
const cybershake = (size, seed) => {
  const { random, add, many, tasks } = builder(seed);
  const sites = Math.max(2, Math.round(size / 100));
  const extracted = many(sites, () => add("extractSGT", 110, 0.4));
  const seismograms = many((size - sites - 2) / 2, () =>
    add("seismogram", 45, 0.6, [extracted[Math.floor(random() * sites)]]),
  );
  const peaks = seismograms.map((each) => add("peakValue", 1, 0.3, [each]));
  add("zipSeismograms", 0.05 * seismograms.length, 0.1, seismograms);
  add("zipPeaks", 0.05 * peaks.length, 0.1, peaks);
  return tasks;
};

/** Two rounds of template banks and inspirals, each followed by tests of coincidence over groups of them. */
const ligo = (size, seed) => {
  const { add, many, tasks } = builder(seed);
  const groups = Math.max(2, Math.round(size / 42));
  const of = many(groups, () => many(10, () => add("tmpltBank", 18, 0.1)));
  const step = (name, median, sigma, from) =>
    from.map((group) => group.map((before) => add(name, median, sigma, [before])));
  const join = (from) => from.map((group) => add("thinca", 5, 0.3, group));
  const first = join(step("inspiral", 460, 0.5, of));
  const bank = first.map((each) => many(10, () => add("trigBank", 5, 0.2, [each])));
  join(step("inspiral2", 220, 0.6, bank));
  return tasks;
};

/** Searches for small RNA, one independent workflow for each replicon. */
const sipht = (size, seed) => {
  const { random, add, many, tasks } = builder(seed);
  const replicons = many(size / 31, () => 0.3 + 1.4 * random());
  const found = replicons.map((weight) => ({
    weight,
    patser: many(18, () => add("patser", 1, 0.3)),
    searches: [
      add("transterm", 32 * weight, 0.2),
      add("findterm", 600 * weight, 0.2),
      add("rnaMotif", 25 * weight, 0.2),
      add("blast", 3300 * weight, 0.2),
    ],
  }));
  for (const each of found) {
    const { weight } = each;
    const concat = add("patserConcat", 1, 0.2, each.patser);
    const srna = add("srna", 12, 0.3, each.searches);
    const parsed = add("ffnParse", 1, 0.2, [srna]);
    const blasts = ["synteny", "candidate", "qrna", "paralogues"].map((name) =>
      add(`blast-${name}`, (name === "qrna" ? 440 : 4) * weight, 0.3, name === "synteny" ? [parsed] : [srna]),
    );
    add("annotate", 2, 0.3, [concat, ...blasts]);
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
