import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  MOST_SERIES,
  createCounter,
  createGauge,
  createHistogram,
  largestOf,
  render,
} from "../../../src/metrics/families.ts";

/** What Prometheus would read: series by their text. */
const seriesOf = (text: string): Map<string, number> => {
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const match = /^([a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})?) (\S+)$/.exec(line);
    expect(match, line).not.toBeNull();
    expect(found.has(match![1]!), `${match![1]} twice`).toBe(false);
    found.set(match![1]!, Number(match![2]!.replace("+Inf", "Infinity")));
  }
  return found;
};

describe("numbers in Prometheus' text", () => {
  it("counters and gauges with hostile labels are one line each, and never the same series twice", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ unit: "binary", maxLength: 300 }), fc.nat(1000)), { maxLength: 80 }),
        (seen) => {
          const counter = createCounter("made_total", "Back\\slash\nand line.", ["name"]);
          for (const [name, by] of seen) counter.add(by, name);
          const gauge = createGauge("now", "Now.", () => seen.map(([name, value]) => ({ labels: { name }, value })));
          const found = seriesOf(render([counter, gauge]));
          const sum = (start: string): number =>
            [...found].filter(([name]) => name.startsWith(start)).reduce((all, [, value]) => all + value, 0);
          const all = seen.reduce((total, [, by]) => total + by, 0);
          expect([sum("made_total"), sum("now")]).toEqual([all, all]);
          expect([...found.keys()].filter((name) => name.startsWith("made_total")).length).toBeLessThanOrEqual(
            MOST_SERIES + 1,
          );
        },
      ),
    );
  });

  it("a counter has at most so many series; what comes beyond is `other`, also where something has that name", () => {
    const counter = createCounter("runs_total", "Runs.", ["of"]);
    counter.add(1, "other");
    for (let i = 0; i < 200; i += 1) counter.add(1, `n${i}`);
    const found = seriesOf(render([counter]));
    expect(found.size).toBe(MOST_SERIES);
    expect(found.get('runs_total{of="other"}')).toBe(1 + 200 - (MOST_SERIES - 1));
  });

  it("a histogram's buckets grow, the last counts everything, and its sum is right", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 100 }), fc.nat(5)), { maxLength: 50 }), (seen) => {
        const histogram = createHistogram("took_seconds", "Time.", [1, 10, 50], ["by"]);
        histogram.observe(0, 0, "x");
        for (const [value, times] of seen) histogram.observe(value, times, "x");
        const found = seriesOf(render([histogram]));
        const within = (most: number): number =>
          seen.filter(([value]) => value <= most).reduce((sum, [, times]) => sum + times, 0);
        for (const most of [1, 10, 50, Infinity]) {
          const le = most === Infinity ? "+Inf" : String(most);
          expect(found.get(`took_seconds_bucket{by="x",le="${le}"}`)).toBe(within(most));
        }
        expect(found.get('took_seconds_count{by="x"}')).toBe(within(Infinity));
        expect(found.get('took_seconds_sum{by="x"}')).toBe(
          seen.reduce((sum, [value, times]) => sum + value * times, 0),
        );
      }),
    );
  });

  it("of many the largest keep their names, and nothing is lost", () => {
    const counts = new Map(Array.from({ length: 120 }, (_, i) => [`s${i}`, i + 1]));
    const samples = largestOf(counts, "shape");
    expect(samples.length).toBe(MOST_SERIES + 1);
    expect(samples[0]).toEqual({ labels: { shape: "s119" }, value: 120 });
    expect(samples.at(-1)!.labels).toEqual({ shape: "other" });
    expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe((120 * 121) / 2);
  });

  it("a family without series is left out", () => {
    expect(render([createGauge("empty", "Nothing.", () => [])])).toBe("");
  });
});
