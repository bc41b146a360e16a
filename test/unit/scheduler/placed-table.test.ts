import fc from "fast-check";
import { expect, test } from "vitest";
import { type Shape, createShapeSet, keyOf } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { type Placed, createLoad, newPlaced } from "../../../src/scheduler/agent-load.ts";

const spec = {} as GroupSpec;
const [set, otherRun] = [createShapeSet(), createShapeSet()];
const shapeOf = (n: number, run = set): Shape => run.of(spec, { cpus: 1, mem: 1 + n });

const agent = () =>
  createLoad({ id: 1, pilot: 1, cluster: "c", queue: "q", resources: { cpus: 8, mem: 2 ** 40 }, endsAt: Infinity });

test("has what was added and not removed, by shape, whatever their hashes are", () => {
  const op = fc.record({ n: fc.integer({ min: 0, max: 400 }), same: fc.boolean() });
  fc.assert(
    fc.property(fc.array(op, { maxLength: 600 }), (ops) => {
      const load = agent();
      const naive = new Map<string, Placed>();
      for (const { n, same } of ops) {
        // half of them have one hash: only their keys tell them apart
        const exact = shapeOf(n);
        const shape = same ? exact : { ...exact, hash: 7 };
        const found = load.placed.find(shape);
        expect(found).toBe(naive.get(`${shape.hash}/${keyOf(shape)}`));
        if (found === undefined) {
          const placed = newPlaced(load, shape);
          load.placed.add(placed);
          naive.set(`${shape.hash}/${keyOf(shape)}`, placed);
        } else {
          load.placed.remove(found);
          naive.delete(`${shape.hash}/${keyOf(shape)}`);
        }
      }
      expect(load.placed.size).toBe(naive.size);
      expect(new Set(load.placed)).toEqual(new Set(naive.values()));
    }),
  );
});

test("an equal shape of another run is the same one", () => {
  const load = agent();
  const placed = newPlaced(load, shapeOf(5));
  load.placed.add(placed);
  expect(load.placed.find(shapeOf(5, otherRun))).toBe(placed);
  expect(load.placed.find(shapeOf(6, otherRun))).toBeUndefined();
});

test("grows to thousands and back, and loses none", () => {
  const load = agent();
  const all = Array.from({ length: 5000 }, (_, n) => newPlaced(load, shapeOf(n)));
  for (const placed of all) load.placed.add(placed);
  for (const placed of all) expect(load.placed.find(placed.shape)).toBe(placed);
  for (const placed of all.slice(10)) load.placed.remove(placed);
  expect(new Set(load.placed)).toEqual(new Set(all.slice(0, 10)));
});
