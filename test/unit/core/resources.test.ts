import * as fc from "fast-check";
import { expect, it } from "vitest";
import { fits, fromUnits, shapeKey, toUnits } from "../../../src/core/resources.ts";

it("fractions add up exactly in units", () => {
  expect(toUnits("gpus", 0.1) * 10).toBe(toUnits("gpus", 1));
  expect(toUnits("cpus", 0.1) + toUnits("cpus", 0.2)).toBe(toUnits("cpus", 0.3));
  expect(toUnits("mem", 1.2)).toBe(2);
});

it("units come back as what people wrote", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10_000_000_000 }), (units) => {
      expect(toUnits("cpus", fromUnits("cpus", units))).toBe(units);
      expect(toUnits("mem", fromUnits("mem", units))).toBe(units);
    }),
  );
});

it("a request fits when no amount is larger than what there is", () => {
  const available = { cpus: 20_000, mem: 1000 };
  expect(fits({}, available)).toBe(true);
  expect(fits({ cpus: 20_000, mem: 1000 }, available)).toBe(true);
  expect(fits({ cpus: 20_001 }, available)).toBe(false);
  expect(fits({ licence: 1 }, available)).toBe(false);
  expect(fits({ licence: 0 }, available)).toBe(true);
});

it("equal requests have equal keys, whatever the order", () => {
  expect(shapeKey({ mem: 5, cpus: 1 })).toBe(shapeKey({ cpus: 1, gpus: 0, mem: 5 }));
  expect(shapeKey({ cpus: 1 })).not.toBe(shapeKey({ cpus: 2 }));
  expect(shapeKey({})).toBe("");
});
