import { describe, expect, it } from "vitest";

interface Baseline {
  readonly entries: Readonly<Record<string, { readonly median: number; readonly worseQuartile: number }>>;
}
interface Guard {
  withResults(baseline: Baseline, results: object): Baseline;
  compare(baseline: Baseline, results: object): readonly { readonly worse: boolean; readonly text: string }[];
}
const { withResults, compare } = (await import(new URL("../../../bench/baseline.mjs", import.meta.url).href)) as Guard;

const measured = { load: 0, commit: "abc", at: "2026-11-18T00:00:00Z" };
const machine = { cpu: "a", cores: 2 };
const rate = (ours: number[], limit: number[]) => ({
  name: "process",
  unit: "tasks/s",
  better: "more",
  limitKey: "bare",
  values: { ours, bare: limit },
  measured,
});
const latency = (ours: number[]) => ({ name: "latency", unit: "ms", better: "less", values: { ours }, measured });
const verdicts = (baseline: Baseline, results: object): boolean[] =>
  compare(baseline, results).map(({ worse }) => worse);

describe("bench --guard", () => {
  const before = withResults(
    { entries: {} },
    {
      machine,
      experiments: [rate([70, 80, 90, 75, 85], [100, 100, 100, 100, 100]), latency([2, 3, 4, 5, 6])],
    },
  );

  it("keeps the median of the rounds, and the quartile on the worse side", () => {
    expect(before.entries["process"]).toMatchObject({
      of: "ratio to bare",
      median: 0.8,
      worseQuartile: 0.75,
      rounds: 5,
    });
    expect(before.entries["latency"]).toMatchObject({ of: "ms", median: 4, worseQuartile: 5 });
  });

  it("fails when a median is worse than that, and only then", () => {
    expect(verdicts(before, { machine, experiments: [rate([76], [100]), latency([5])] })).toEqual([false, false]);
    expect(verdicts(before, { machine, experiments: [rate([74], [100]), latency([5.1])] })).toEqual([true, true]);
  });

  it("on another machine compares ratios alone, and says so; what is new is no failure", () => {
    const elsewhere = { machine: { cpu: "b", cores: 16 }, experiments: [rate([74], [100]), latency([50])] };
    expect(verdicts(before, elsewhere)).toEqual([true, false]);
    expect(compare(before, elsewhere)[1]!.text).toContain("the baseline is of 2 × a");
    expect(verdicts({ entries: {} }, elsewhere)).toEqual([false, false]);
    expect(verdicts(withResults(before, elsewhere), elsewhere)).toEqual([false, false]);
  });
});
