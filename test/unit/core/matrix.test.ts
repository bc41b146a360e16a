import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fieldOf, itemOf } from "../../../src/core/item.ts";
import { itemIn, itemsOf } from "../../../src/core/item-source.ts";
import { type Matrix, matrixItem, matrixItems, telling } from "../../../src/core/matrix.ts";
import { atOnce, pair } from "../../../src/core/pairing.ts";
import type { Axis } from "../../../src/core/spec.ts";
import { createDriver, group, spec } from "./model.ts";

const axis = fc.oneof(
  fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 4 }).map((values) => ({ values })),
  fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 })).map(([from, step, count]) => ({
    ranges: [
      { from, step, count },
      { from: from + 100, step: 1, count: 2 },
    ],
  })),
);
const matrices = fc.array(axis, { minLength: 1, maxLength: 4 }).map((axes): Matrix => {
  const named = axes.map((each, i): Axis => ({ name: `k${i}`, ...each }));
  return { kind: "matrix", axes: named, count: naive(named).length };
});

/** All combinations, the last key fastest, written out. */
const naive = (axes: readonly Axis[]): string[] => {
  let all: Record<string, unknown>[] = [{}];
  for (const { name, values, ranges = [] } of axes) {
    const own =
      values ?? ranges.flatMap(({ from, step, count }) => Array.from({ length: count }, (_, i) => from + i * step));
    all = all.flatMap((before) => own.map((value) => ({ ...before, [name]: value })));
  }
  return all.map((each) => JSON.stringify(each));
};

describe("a matrix", () => {
  it("has the items of all combinations, the last key fastest, and nothing is stored", () => {
    fc.assert(
      fc.property(matrices, (matrix) => {
        expect([...matrixItems(matrix)]).toEqual(naive(matrix.axes));
      }),
    );
  });

  it("what is checked shows each value of each list, and the longest item of all", () => {
    fc.assert(
      fc.property(matrices, (matrix) => {
        const shown = [...telling(matrix)].map(
          (place) => JSON.parse(matrixItem(matrix, place)) as Record<string, unknown>,
        );
        for (const { name, values = [] } of matrix.axes)
          expect(new Set(shown.map((item) => item[name]))).toEqual(
            new Set([...values, ...shown.map((item) => item[name])]),
          );
      }),
    );
  });

  it("of ten million is nothing in memory, and the same as another without a look at its items", () => {
    const axes = [
      { name: "a", ranges: [{ from: 1, step: 1, count: 5_000_000 }] },
      { name: "b", values: ["x", "y"] },
    ];
    const items: Matrix = { kind: "matrix", axes, count: 10_000_000 };
    const driver = createDriver();
    const run = driver.submit(
      spec([
        group("first", 1),
        group("one", 1, { items, after: [{ group: 0, on: "ok" }] }),
        group("two", 1, { items, after: [{ group: 1, on: "ok", items: "same" }] }),
      ]),
    );
    expect(run.groups[2]!.links[0]!.pairing).toEqual({ kind: "alike" });
    expect(run.table.pages.every((page) => page === undefined)).toBe(true);
    const last = itemIn(itemsOf({ items }, undefined), 9_999_999)!;
    expect([last.text, fieldOf(last, ["a"]), fieldOf(last, ["b"])]).toEqual(['{"a":5000000,"b":"y"}', "5000000", "y"]);
  });

  it("waits by one of its keys", () => {
    const one = itemsOf({ items: matrixOf({ s: ["x", "y"], n: ["1", "2", "3"] }) }, undefined);
    const other = itemsOf({ items: matrixOf({ s: ["y", "x"] }) }, undefined);
    const found = atOnce(pair({ name: "a", ...one }, { name: "b", ...other }, { by: "s" }));
    expect(found).toMatchObject({
      kind: "keyed",
      before: Uint32Array.of(0, 0, 0, 1, 1, 1),
      after: Uint32Array.of(1, 0),
    });
  });
});

const matrixOf = (of: Record<string, string[]>): Matrix => {
  const axes = Object.entries(of).map(([name, values]) => ({ name, values }));
  return { kind: "matrix", axes, count: naive(axes).length };
};

it("columns of a line are its parts; the item is the whole line", () => {
  const item = itemOf("a,b c,", false, ",");
  expect([item.text, fieldOf(item, ["0"]), fieldOf(item, ["1"]), fieldOf(item, ["2"])]).toEqual([
    "a,b c,",
    "a",
    "b c",
    "",
  ]);
  expect(() => fieldOf(item, ["3"])).toThrow("no field '3'");
  expect(() => fieldOf(item, ["length"])).toThrow("no field");
});
