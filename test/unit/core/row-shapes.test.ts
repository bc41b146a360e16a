import fc from "fast-check";
import { expect, it } from "vitest";
import { FRACTION, type Resources, bucketKey } from "../../../src/core/resources.ts";
import { rowShapesOf } from "../../../src/core/row-shapes.ts";
import { keyOf, sameShape, shapeOf } from "../../../src/core/run.ts";
import { group } from "./model.ts";

const arbAsked: fc.Arbitrary<Resources> = fc
  .record({
    cpus: fc.integer({ min: 0, max: 2 }).map((n) => n * FRACTION),
    mem: fc.option(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 50 })), { nil: undefined }),
    tmp: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
    red: fc.option(fc.constant(FRACTION), { nil: undefined }),
  })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, amount]) => amount !== undefined)) as Resources);

const positive = (resources: Resources): [string, number][] =>
  Object.entries(resources)
    .filter(([, amount]) => amount > 0)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

it("rows ask for just what they were pushed with, and are alike where that is equal", () => {
  const specs = [
    group("plain", 1),
    group("ranks", 1, { ranks: { count: 2, by: "agents" } }),
    group("here", 1, { cluster: "local", redirect: { here: { cpus: FRACTION, mem: 30 } } }),
  ];
  fc.assert(
    fc.property(fc.constantFrom(...specs), fc.array(arbAsked, { minLength: 1, maxLength: 150 }), (spec, all) => {
      const rows = rowShapesOf(spec, (i) => all[i]!, all.length);
      expect(rows.length).toBe(all.length);
      const naive = all.map((asked) => shapeOf(spec, asked));
      for (const [i, exact] of naive.entries()) {
        const shape = rows.at(i);
        expect(positive(shape.resources)).toEqual(positive(exact.resources));
        expect(keyOf(shape)).toBe(keyOf(exact));
        expect(shape).toMatchObject({ hash: exact.hash, ranks: exact.ranks, timeRequest: exact.timeRequest });
        expect(shape.alone).toBe(exact.alone);
        expect(sameShape(shape, exact)).toBe(true);
        expect(rows.bucketAt(i).key).toBe(exact.bucket.key);
        expect(rows.bucketAt(i).key.endsWith(bucketKey(exact.resources))).toBe(true);
        const other = (i * 7) % all.length;
        const alike = keyOf(naive[other]!) === keyOf(exact);
        expect(rows.areAlike(i, other)).toBe(alike);
        expect(sameShape(rows.at(i), rows.at(other))).toBe(alike);
      }
    }),
  );
});
