import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ask } from "../../../bench/eta/coverage.ts";
import { estimate } from "../../../src/eta/estimate.ts";
import { type OpenGroup, type OpenWork, leastMs } from "../../../src/eta/work.ts";

const group = (more: Partial<OpenGroup> = {}): OpenGroup => ({
  waiting: 10,
  running: [],
  after: [],
  atOnce: 1,
  priority: 0,
  times: { key: 1, values: [1000] },
  ...more,
});

const work = (groups: readonly OpenGroup[], more: Partial<OpenWork> = {}): OpenWork => ({
  groups,
  units: 1,
  arrivals: [],
  aheadMs: 0,
  attempts: 1,
  ...more,
});

const many = (ms: number): number[] => Array.from({ length: 50 }, () => ms);

const groups = fc
  .array(
    fc.record({
      waiting: fc.nat(30),
      running: fc.array(fc.nat(5000), { maxLength: 4 }),
      after: fc.array(fc.nat(20), { maxLength: 3 }),
      atOnce: fc.integer({ min: 1, max: 8 }),
      values: fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 20 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((all) =>
    all.map(({ values, after, ...rest }, i) =>
      group({ ...rest, after: [...new Set(after.filter((each) => each < i))], times: { key: i, values } }),
    ),
  );

describe("row 001-12: when a run ends", () => {
  it("stages that follow each other item by item are no barriers", () => {
    const stages = (byItem: boolean) =>
      [0, 1, 2].map((i) =>
        group({
          waiting: 3,
          after: i === 0 ? [] : [i - 1],
          ...(byItem && i > 0 ? { byItem: [i - 1] } : {}),
          times: { key: 1, values: many(10_000) },
        }),
      );
    // nine tasks of 10 s on two cores: 45 s at best; with a barrier behind each stage 60 s
    const ofItems = estimate(work(stages(true), { units: 2 }), 1).p50;
    const ofBarriers = estimate(work(stages(false), { units: 2 }), 1).p50;
    expect(ofBarriers / ofItems).toBeGreaterThan(1.1);
    expect(ofItems).toBeGreaterThan(44_000);
    // many short ones behind one long one: all but its own line are done meanwhile
    const long = [group({ waiting: 0, running: [0], times: { key: 1, values: many(60_000) } })];
    const behind = group({ waiting: 100, after: [0], byItem: [0], times: { key: 2, values: many(100) } });
    expect(estimate(work([...long, behind], { units: 2 }), 1).p50).toBeLessThan(66_000);
  });

  it("whatever follows whatever, item by item: it ends, and not before its work is done", () => {
    fc.assert(
      fc.property(groups, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (all, linked) => {
        const left = work(all.map((each, i) => (linked[i]! ? { ...each, byItem: each.after } : each)));
        const { p50 } = estimate(left, 1);
        expect(p50).toBeGreaterThan(0);
        expect(Number.isFinite(p50)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it("is bounded below by the critical path and by the work over all cores", () => {
    fc.assert(
      fc.property(groups, (all) => {
        const left = work(all);
        const { p10, p50, p90 } = estimate(left, 1);
        expect(p50).toBeGreaterThanOrEqual(leastMs(left));
        expect(p10).toBeLessThanOrEqual(p50);
        expect(p90).toBeGreaterThanOrEqual(p50);
        expect(p10).toBeGreaterThan(0);
      }),
      { numRuns: 60 },
    );
    const chain = [0, 1, 2].map((i) =>
      group({ waiting: 1, after: i === 0 ? [] : [i - 1], times: { key: i, values: many(5000) } }),
    );
    expect(leastMs(work(chain, { units: 100 }))).toBe(15_000);
    expect(leastMs(work([group({ waiting: 100, atOnce: 4 })]))).toBe(25_000);
  });

  it("follows the work, the slots, the graph and what runs already", () => {
    const p50 = (...all: OpenGroup[]): number => estimate(work(all), 1).p50;
    const times = { key: 1, values: many(1000) };
    const near = (value: number, wanted: number): void => {
      expect(value).toBeGreaterThan(wanted * 0.8);
      expect(value).toBeLessThan(wanted * 1.3);
    };
    near(p50(group({ waiting: 1000, atOnce: 10, times })), 100_000);
    near(p50(group({ waiting: 1000, atOnce: 40, times })), 25_000);
    near(p50(group({ waiting: 1_000_000, atOnce: 1000, times })), 1_000_000);
    near(p50(group({ waiting: 10, atOnce: 10, times }), group({ waiting: 10, atOnce: 10, after: [0], times })), 2000);
    near(p50(group({ waiting: 0, running: [0, 0], atOnce: 2, times: { key: 1, values: many(60_000) } })), 60_000);
    const { p50: late } = estimate(
      work([group({ atOnce: 10, times })], { units: 0, arrivals: [{ units: 1, waits: many(50_000) }] }),
      1,
    );
    near(late, 51_000);
    const { p50: behind } = estimate(work([group({ atOnce: 10, times })], { aheadMs: 30_000 }), 1);
    near(behind, 31_000);
  });

  it("is the same for the same question, wider for a guess, and made quickly for a million tasks", () => {
    const left = work([group({ waiting: 1_000_000, atOnce: 5000, times: { key: 1, values: [900, 1000, 1100] } })]);
    expect(estimate(left, 7)).toEqual(estimate(left, 7));
    const width = (guess: boolean): number => {
      const times = {
        key: 1,
        values: guess ? [1000] : many(1000),
        ...(guess ? { guess: { off: 0.7, together: 0.4, level: 0 } } : {}),
      };
      const { p10, p90 } = estimate(work([group({ times })]), 1);
      return p90 / p10;
    };
    expect(width(true)).toBeGreaterThan(2 * width(false));
  });

  it("holds the truth in most of a few simulated runs, and is nearer to it than the share of tasks that ended", () => {
    const asked = Array.from({ length: 40 }, (_, i) => ask(2_000_000 + i));
    const inside = asked.filter(({ truth, estimate: { p10, p90 } }) => truth >= p10 && truth <= p90).length;
    expect(inside).toBeGreaterThanOrEqual(22);
    expect(inside).toBeLessThanOrEqual(39);
    const median = (errors: number[]): number => errors.toSorted((a, b) => a - b)[errors.length >> 1]!;
    const off = (of: (each: (typeof asked)[number]) => number): number =>
      median(asked.map((each) => Math.abs(Math.log(of(each) / each.truth))));
    expect(off((each) => each.estimate.p50)).toBeLessThan(off((each) => each.linear));
  });
});
