// Sums up the numbers of many rounds.

export const quantile = (values, q) => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
};

export const median = (values) => quantile(values, 0.5);

/** The median with the least and the most. */
export const summary = (values) => ({ median: median(values), min: Math.min(...values), max: Math.max(...values) });

/** Ours over theirs, round by round: whatever disturbed the machine in a round disturbed both. */
export const ratios = (ours, theirs) => summary(ours.map((value, round) => value / theirs[round]));
