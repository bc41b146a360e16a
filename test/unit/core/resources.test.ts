import * as fc from "fast-check";
import { expect, it } from "vitest";
import { amountOf, fromUnits, shapeKey, toUnits } from "../../../src/core/resources.ts";

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

it("finds no amount under a name that every object has", () => {
  const available = { cpus: 20_000, mem: 1000 };
  expect(amountOf(available, "cpus")).toBe(20_000);
  for (const name of ["gpus", "constructor", "toString", "__proto__"]) expect(amountOf(available, name)).toBe(0);
});

it("equal requests have equal keys, whatever the order", () => {
  expect(shapeKey({ mem: 5, cpus: 1 })).toBe(shapeKey({ cpus: 1, gpus: 0, mem: 5 }));
  expect(shapeKey({ cpus: 1 })).not.toBe(shapeKey({ cpus: 2 }));
  expect(shapeKey({})).toBe("");
});
