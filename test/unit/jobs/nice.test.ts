import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_SCALE, baseOf, fittingFactor, movesEnough, niceOf, scaleOf } from "../../../src/jobs/nice.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 18, 13, 30);

describe("row 001-66: nice values", () => {
  it("grow with the date, from 0 at the start of the UTC day, and stay below the priority", () => {
    expect(baseOf(NOW, DEFAULT_SCALE)).toBe(Date.UTC(2026, 10, 18));
    expect(niceOf(Date.UTC(2026, 10, 18, 1), NOW, DEFAULT_SCALE, 100_000)).toBe(3600);
    expect(niceOf(Date.UTC(2026, 10, 17, 1), NOW, DEFAULT_SCALE, 100_000), "overdue").toBe(0);
    expect(niceOf(Date.UTC(2026, 10, 20), NOW, DEFAULT_SCALE, 100_000), "later than P says").toBe(99_999);
    expect(niceOf(Date.UTC(2026, 10, 18, 1), NOW, DEFAULT_SCALE, 1000), "the laboratory's P").toBe(999);
    expect(niceOf(Date.UTC(2026, 10, 18, 1), NOW, { ...DEFAULT_SCALE, factor: 0.01 }, 1000)).toBe(36);
  });

  it("are the same in all homes, in the order of dates, whatever the parameters say", () => {
    const date = fc.integer({ min: NOW - 3 * DAY, max: NOW + 3 * DAY });
    const parameters = fc.record(
      { nice_factor: fc.oneof(fc.string(), fc.double().map(String)), time_origin: fc.string() },
      { requiredKeys: [] },
    );
    const priority = fc.option(fc.integer({ min: 0, max: 4_294_967_295 }), { nil: undefined });
    fc.assert(
      fc.property(date, date, parameters, priority, (a, b, said, most) => {
        const scale = scaleOf(said);
        const [first, second] = [Math.min(a, b), Math.max(a, b)].map((at) => niceOf(at, NOW, scale, most));
        expect(first).toBeLessThanOrEqual(second!);
        for (const nice of [first!, second!]) {
          expect(Number.isSafeInteger(nice)).toBe(true);
          expect(nice).toBeGreaterThanOrEqual(0);
          expect(nice).toBeLessThan(Math.max(1, most ?? 2 ** 31));
        }
      }),
    );
  });

  it("rows 001-67 and 001-68: time_origin and nice_factor are read from the manager's parameters; else 2023-01-01 and 1", () => {
    expect(scaleOf({})).toEqual({ origin: Date.UTC(2023, 0, 1), factor: 1 });
    expect(scaleOf({ time_origin: "2030-05-06 07:08", nice_factor: "0.25" })).toEqual({
      origin: Date.UTC(2030, 4, 6, 7, 8),
      factor: 0.25,
    });
    expect(scaleOf({ time_origin: "2030-05-06 07:08+02:00" }).origin).toBe(Date.UTC(2030, 4, 6, 5, 8));
    expect(scaleOf({ time_origin: "soon", nice_factor: "-3" })).toEqual(DEFAULT_SCALE);
    // an origin that is still to come: nothing before it is told apart
    expect(niceOf(NOW, NOW, scaleOf({ time_origin: "2030-01-01 00:00" }), undefined)).toBe(0);
  });

  it("a priority too small for a day is noticed, with the factor that fits", () => {
    expect(fittingFactor(DEFAULT_SCALE, undefined)).toBe(undefined);
    expect(fittingFactor(DEFAULT_SCALE, 100_000)).toBe(undefined);
    const fitting = fittingFactor(DEFAULT_SCALE, 1000)!;
    expect(fittingFactor({ ...DEFAULT_SCALE, factor: fitting }, 1000)).toBe(undefined);
    expect(fitting * 86_400).toBeGreaterThan(990);
  });

  it("a job is told again only when its place has moved by a minute, or by a twentieth", () => {
    expect(movesEnough(50_000, 50_059, DEFAULT_SCALE)).toBe(false);
    expect(movesEnough(50_000, 50_060, DEFAULT_SCALE)).toBe(true);
    expect(movesEnough(100, 104, DEFAULT_SCALE)).toBe(false);
    expect(movesEnough(100, 105, DEFAULT_SCALE)).toBe(true);
    expect(movesEnough(5, 5, DEFAULT_SCALE)).toBe(false);
  });
});
