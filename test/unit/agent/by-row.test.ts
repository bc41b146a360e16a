import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createByRow } from "../../../src/agent/by-row.ts";

describe("what is kept by run and row", () => {
  it("agrees with one table for all", () => {
    const step = fc.record({ run: fc.nat(3), row: fc.nat(5), what: fc.constantFrom("set", "delete", "get") });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const kept = createByRow<number>();
        const model = new Map<string, number>();
        steps.forEach(({ run, row, what }, nth) => {
          const key = `${run}.${row}`;
          if (what === "set") {
            kept.set(run, row, nth);
            model.set(key, nth);
          } else if (what === "delete") {
            kept.delete(run, row);
            model.delete(key);
          }
          expect(kept.get(run, row)).toBe(model.get(key));
          expect(kept.size).toBe(model.size);
        });
        expect([...kept.values()].toSorted()).toEqual([...model.values()].toSorted());
      }),
    );
  });
});
