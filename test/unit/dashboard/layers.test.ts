import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layers } from "../../../dashboard/format/layers.ts";

describe("a graph by stages", () => {
  it("puts each stage behind all that it waits for, and no two in one place", () => {
    const graph = fc
      .array(fc.array(fc.nat(200), { maxLength: 4 }), { maxLength: 60 })
      .map((lists) =>
        lists.map((after, index) => ({ index, after: index === 0 ? [] : after.map((each) => each % index) })),
      );
    fc.assert(
      fc.property(graph, (nodes) => {
        const placed = new Map(layers(nodes).map((each) => [each.index, each]));
        expect(placed.size).toBe(nodes.length);
        expect(new Set([...placed.values()].map(({ column, row }) => `${column} ${row}`)).size).toBe(nodes.length);
        for (const { index, after } of nodes)
          for (const before of after) expect(placed.get(before)!.column).toBeLessThan(placed.get(index)!.column);
      }),
    );
  });

  it("ends with a cycle, which no run has, and with stages that are not there", () => {
    expect(
      layers([
        { index: 0, after: [1] },
        { index: 1, after: [0, 7] },
      ]),
    ).toHaveLength(2);
  });
});
