import fc from "fast-check";
import { describe, expect, it } from "vitest";

// The graphs and orders of the benchmark "makespan": what they are has to be right for its numbers to mean something.

interface GraphTask {
  readonly template: string;
  readonly seconds: number;
  readonly after: readonly number[];
}

const load = async (name: string): Promise<Record<string, unknown>> =>
  (await import(new URL(`../../../bench/makespan/${name}.mjs`, import.meta.url).href)) as Record<string, unknown>;

const { FAMILIES } = (await load("graphs")) as {
  FAMILIES: Record<string, (size: number, seed: number) => GraphTask[]>;
};
const { ordersOf } = (await load("orders")) as {
  ordersOf(tasks: readonly GraphTask[], expected: readonly number[], randoms: number): Record<string, Float64Array>;
};

const waitsFor = (...after: readonly (readonly number[])[]): GraphTask[] =>
  after.map((each) => ({ template: "t", seconds: 1, after: each }));

const orderOf = (name: string, tasks: readonly GraphTask[]): number[] => {
  const found = Object.entries(
    ordersOf(
      tasks,
      Array.from(tasks, () => 1),
      1,
    ),
  ).find(([each]) => each.startsWith(name));
  return [...tasks.keys()].toSorted((a, b) => found![1][b]! - found![1][a]!);
};

const arbGraph = fc
  .array(fc.array(fc.nat(), { maxLength: 4 }), { minLength: 1, maxLength: 40 })
  .map((edges) => waitsFor(...edges.map((to, i) => (i === 0 ? [] : [...new Set(to.map((each) => each % i))]))));

describe("the graphs of the benchmark", () => {
  it("are of the size that is asked for, and wait only for what comes before", () => {
    for (const [family, make] of Object.entries(FAMILIES))
      for (const size of [60, 1000, 10_000]) {
        const tasks = make(size, 7);
        expect(Math.abs(tasks.length - size) / size, `${family} of ${size}`).toBeLessThan(0.05);
        const wrong = tasks.filter(
          ({ seconds, after }, i) =>
            seconds <= 0 || new Set(after).size < after.length || after.some((before) => before >= i),
        );
        expect(wrong, `${family} of ${size}`).toEqual([]);
      }
  });

  it("are the same for the same seed, and others for others", () => {
    for (const make of Object.values(FAMILIES)) {
      expect(make(100, 3)).toEqual(make(100, 3));
      expect(make(100, 3)).not.toEqual(make(100, 4));
    }
  });
});

describe("the orders of peers", () => {
  it("Dask's is one in which a single worker could run them all", () => {
    fc.assert(
      fc.property(arbGraph, (tasks) => {
        const order = orderOf("Dask's", tasks);
        const places = new Map(order.map((i, place) => [i, place]));
        expect(places.size).toBe(tasks.length);
        for (const [i, { after }] of tasks.entries())
          for (const before of after) expect(places.get(before)!).toBeLessThan(places.get(i)!);
      }),
    );
  });

  it("Dask's ends one branch before it begins the next", () => {
    // two roots with a chain each, joined at the end
    const tasks = waitsFor([], [], [0], [1], [2], [3], [4, 5]);
    expect(orderOf("Dask's", tasks)).toEqual([1, 3, 5, 0, 2, 4, 6]);
  });

  it("HyperQueue's is by number since 0.26, and was by the longest path in tasks", () => {
    const tasks = waitsFor([], [], [1], [2]);
    expect(orderOf("HyperQueue's since 0.26", tasks)).toEqual([0, 1, 2, 3]);
    expect(orderOf("HyperQueue's up to 0.22", tasks)).toEqual([1, 2, 0, 3]);
  });
});
