// The shapes of real workflows, with times as published.
//
// Where shapes and times are from: Montage and Epigenomics from the recipes of WfCommons 1.0 (types of tasks, how many of
// each, the range of their times). It has none for CyberShake, LIGO and SIPHT: these follow the generator of the Pegasus
// project (WorkflowGenerator, bharathi/; Bharathi 2008, Juve 2013), means and variances as given there; so do Montage's
// times, as those of WfCommons run from 0 to 1,263 s for one type. Sizes of files are left out: nothing is transferred.
import { createBuilder } from "./builder.mjs";

/** Three colours: images are projected, compared where they overlap, fitted together, corrected and added; one picture. */
export const montage = (size, seed) => {
  const { random, add, many, tasks } = createBuilder(seed);
  // WfCommons' instances have 2 to 8 overlaps for each image
  const images = (size - 16) / 18;
  const projected = many(3, () => many(images, () => add("mProject", 13.6, 0.3)));
  const overlaps = projected.map((band) =>
    many(images * 4, (i) => {
      const one = i % band.length;
      const other = (one + 1 + Math.floor(random() * 8)) % band.length;
      return add("mDiffFit", 10.6, 0.3, [...new Set([band[one], band[other]])]);
    }),
  );
  const models = overlaps
    .map((band) => add("mConcatFit", 0.08 * band.length, 0.1, band))
    .map((concat, band) => add("mBgModel", 0.13 * overlaps[band].length, 0.1, [concat]));
  const corrected = projected.map((band, i) => band.map((image) => add("mBackground", 10.7, 0.3, [image, models[i]])));
  const sums = corrected
    .map((band) => add("mImgtbl", 0.37 * band.length, 0.1, band))
    .map((table, i) => add("mAdd", 30, 0.1, [table, ...corrected[i]]));
  for (const sum of sums) add("mViewer", 12, 0.1, [sum]);
  add("mViewer", 12, 0.1, sums);
  return tasks;
};

/** Lanes of sequences, each cut into chunks that pass through four steps, merged and analysed. */
export const epigenomics = (size, seed) => {
  const { add, many, parts, tasks } = createBuilder(seed);
  const lanes = Math.max(2, Math.round(Math.sqrt(size) / 5));
  const split = many(lanes, () => add("fastqSplit", 35, 0.5));
  // lanes are of different sizes: 9 to 28 and 59 to 75 chunks in WfCommons' instances
  const counts = parts(lanes, (size - 3 - 2 * lanes) / 4, 0.4);
  const chunks = split.flatMap((last, lane) => many(counts[lane], () => ({ lane, last })));
  for (const [name, median, sigma] of [
    ["filterContams", 3, 0.6],
    ["sol2sanger", 1, 0.6],
    ["fast2bfq", 1.5, 0.6],
    ["map", 45, 0.4],
  ])
    for (const chunk of chunks) chunk.last = add(name, median, sigma, [chunk.last]);
  const lasts = split.map(() => []);
  for (const { lane, last } of chunks) lasts[lane].push(last);
  const merged = lasts.map((maps) => add("mapMerge", 10, 0.4, maps));
  const total = add("mapMerge", 10, 0.4, merged);
  add("pileup", 55, 0.3, [add("chr21", 40, 0.5, [total])]);
  return tasks;
};

/** Strain tensors are extracted, and of each many seismograms are made whose peaks are sought; all are packed. */
export const cybershake = (size, seed) => {
  const { addNormal, many, parts, tasks } = createBuilder(seed);
  const extracted = many(Math.max(2, 0.0081 * size), () => addNormal("ExtractSGT", 137.45, 206.6));
  const counts = parts(extracted.length, (size - extracted.length - 2) / 2, 0.25);
  const seismograms = extracted.flatMap((from, i) =>
    many(counts[i], () => addNormal("SeismogramSynthesis", 43.4, 31.4, [from])),
  );
  const peaks = seismograms.map((each) => addNormal("PeakValCalcOkaya", 1.09, 1.93, [each]));
  addNormal("ZipSeis", 0.018 * seismograms.length, 0, seismograms);
  addNormal("ZipPSA", 0.013 * peaks.length, 0, peaks);
  return tasks;
};

/** Two rounds of banks of waves and inspirals, each followed by tests of coincidence over groups of them. */
export const ligo = (size, seed) => {
  const { random, addNormal, many, parts, tasks } = createBuilder(seed);
  const counts = parts(Math.max(2, Math.round(size / 42)), size / 4.2, 0.6);
  /** Some belong to two groups: up to 1.05 edges for each. */
  const shared = (groups) =>
    groups.map((group, i) => (i > 0 && random() < 0.5 ? [...group, groups[i - 1].at(-1)] : group));
  const inspirals = (banks) =>
    shared(banks.map((group) => group.map((bank) => addNormal("Inspiral", 460.21, 545.3, [bank]))));
  const join = (groups) => groups.map((group) => addNormal("Thinca", 5.37, 0.24, group));
  const first = join(inspirals(counts.map((count) => many(count, () => addNormal("TmpltBank", 18.14, 0.42)))));
  join(inspirals(counts.map((count, i) => many(count, () => addNormal("TrigBank", 5.11, 0.32, [first[i]])))));
  return tasks;
};

/** Searches for small RNA, one independent workflow for each replicon. */
export const sipht = (size, seed) => {
  const { addNormal, many, parts, tasks } = createBuilder(seed);
  const count = Math.max(1, Math.round(size / 30));
  const found = parts(count, 18 * count, 0.2).map((patsers) => ({
    patsers: many(patsers, () => addNormal("Patser", 1.27, 0.33)),
    searches: [
      addNormal("Findterm", 1349.47, 797),
      addNormal("RNAMotif", 36.42, 8.84),
      addNormal("Transterm", 55.78, 48.5),
      addNormal("Blast", 2350.58, 1016.8),
    ],
  }));
  for (const { patsers, searches } of found) {
    const concat = addNormal("Patser_concate", 0.08, 0.1, patsers);
    const srna = addNormal("SRNA", 361.33, 342.7, searches);
    const parsed = addNormal("FFN_Parse", 1.64, 0.24, [srna]);
    const blasts = [
      addNormal("Blast_candidate", 5.18, 1, [srna]),
      addNormal("Blast_QRNA", 1412.09, 98.5, [srna]),
      addNormal("Blast_synteny", 33, 0, [srna, parsed]),
      addNormal("Blast_paralogues", 4.99, 1.15, [srna]),
    ];
    addNormal("SRNA_annotate", 1.68, 0.96, [srna, concat, ...blasts]);
  }
  return tasks;
};
