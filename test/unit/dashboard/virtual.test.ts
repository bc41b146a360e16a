import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MOST_PIXELS, inSight, scrollTo, spacerHeight } from "../../../dashboard/format/virtual.ts";

const table = (rows: number) => ({ rows, rowHeight: 28, view: 600 });

describe("a table of any length", () => {
  it("has a spacer that browsers can hold", () => {
    expect(spacerHeight(table(10))).toBe(280);
    expect(spacerHeight(table(1_000_000))).toBe(MOST_PIXELS);
  });

  it("shows its first row at the top and its last at the bottom", () => {
    const million = table(1_000_000);
    expect(inSight(million, 0)).toMatchObject({ first: 0, shift: 0 });
    const { first, count, shift } = inSight(million, MOST_PIXELS - million.view);
    expect(first + count).toBe(1_000_000);
    expect(count * 28 - shift).toBeCloseTo(600, 3);
  });

  it("brings any row into sight, and leaves it where it is then", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000_000 }),
        fc.nat(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (rows, seed, at) => {
          const own = table(rows);
          const row = seed % rows;
          const before = at * Math.max(0, spacerHeight(own) - own.view);
          const top = scrollTo(own, before, row) ?? before;
          const { first, count } = inSight(own, top);
          expect(row).toBeGreaterThanOrEqual(first);
          expect(row).toBeLessThan(first + count + 1);
          expect(count).toBeLessThan(24);
        },
      ),
    );
  });
});
