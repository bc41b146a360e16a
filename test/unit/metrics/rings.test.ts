import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRing } from "../../../src/metrics/rings.ts";

describe("rings", () => {
  it("sum what is counted and keep the last of what is measured, step by step", () => {
    const ring = createRing({ stepMs: 10, steps: 3 }, 1, 1);
    for (const [at, counted, measured] of [
      [100, 1, 7],
      [109, 2, 8],
      [110, 4, 9],
      [135, 5, 1],
    ] as const)
      ring.add(at, [counted], [measured]);
    // 120 to 130 had no look, and 100 is forgotten with the step that took its place
    expect(ring.columns()).toEqual({
      time: [120, 140],
      values: [
        [4, 5],
        [9, 1],
      ],
    });
  });

  it("nothing is lost within the span, whatever the times, and the size stays", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 }), (steps) => {
        const ring = createRing({ stepMs: 10, steps: 5 }, 1, 0);
        let at = 1000;
        const looks = steps.map((step) => (at += step));
        for (const look of looks) ring.add(look, [1], []);
        const { time, values } = ring.columns();
        expect(time.length).toBeLessThanOrEqual(5);
        expect(time).toEqual([...time].toSorted((a, b) => a - b));
        const newest = Math.floor(at / 10);
        const within = looks.filter((look) => Math.floor(look / 10) > newest - 5).length;
        expect(values[0]!.reduce((sum, each) => sum + each, 0)).toBe(within);
      }),
    );
  });
});
