/** Axes: round numbers that are not more than asked for. Pure. */

/** A round top at or above `most`, and the steps up to it. */
export const roundTop = (most: number, steps = 3): { readonly top: number; readonly ticks: readonly number[] } => {
  if (!(most > 0)) return { top: 1, ticks: [0, 1] };
  const rough = most / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999)!;
  const top = Math.ceil(most / step - 1e-9) * step;
  return { top, ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step) };
};

const SECONDS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
];

/** The distance of ticks on an axis of `span` seconds, so that there are at most `most` of them. */
export const tickSeconds = (span: number, most: number): number =>
  SECONDS.find((step) => span / step <= most) ?? Math.ceil(span / most / 604_800) * 604_800;

/** The multiples of `step` between two numbers. */
export const multiples = (from: number, to: number, step: number): number[] => {
  const found: number[] = [];
  for (let at = Math.ceil(from / step - 1e-9) * step; at <= to && found.length < 1000; at += step) found.push(at);
  return found;
};
