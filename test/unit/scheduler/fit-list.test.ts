import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Resources } from "../../../src/core/resources.ts";
import { type Entry, NOTHING_BARRED, type Room, createFitList, fitsInto } from "../../../src/scheduler/fit-list.ts";

interface Ranked extends Entry {
  readonly rank: number;
}

const create = () => createFitList<Ranked, { readonly rank: number }>((a, b) => a.rank < b.rank);

const NAMES = ["cpus", "mem", "toString", "__proto__x", ...Array.from({ length: 20 }, (_, i) => `r${i}`)];

const arbResources = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), fc.integer({ min: 0, max: 5 })), {
    maxLength: 4,
    selector: ([name]) => name,
  })
  .map((pairs): Resources => Object.fromEntries(pairs));

const arbRoom: fc.Arbitrary<Room> = fc.record({
  free: arbResources,
  seconds: fc.constantFrom(0, 5, Infinity),
  barred: fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 2 }).map((names) => new Set(names)),
});

type Step =
  | { readonly do: "add"; readonly resources: Resources; readonly time: number; readonly rank: number }
  | { readonly do: "remove"; readonly which: number }
  | { readonly do: "walk"; readonly room: Room };

const arbStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("add" as const),
      resources: arbResources,
      time: fc.nat(9),
      // often at the end, as tasks come, and anywhere between others
      rank: fc.oneof(fc.constant(Infinity), fc.double({ min: 0, max: 1, noNaN: true })),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("remove" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("walk" as const), room: arbRoom }) },
);

describe("a list of what may fit", () => {
  it("finds in order exactly those that fit, whatever came and went", () => {
    fc.assert(
      fc.property(fc.array(arbStep, { minLength: 1, maxLength: 400 }), (steps) => {
        const list = create();
        let model: Ranked[] = [];
        for (const step of steps) {
          if (step.do === "add") {
            const rank = step.rank === Infinity ? (model.at(-1)?.rank ?? 0) + 1 : step.rank;
            if (model.some((each) => each.rank === rank)) continue;
            const entry: Ranked = { asks: step.resources, timeRequest: step.time, leaf: -1, rank };
            list.add(entry);
            model = [...model, entry].toSorted((a, b) => a.rank - b.rank);
          } else if (step.do === "remove" && model.length > 0) {
            const [entry] = model.splice(step.which % model.length, 1);
            list.remove(entry!);
            list.remove(entry!);
          } else if (step.do === "walk") {
            const found: Ranked[] = [];
            for (let next = list.next(undefined, step.room); next !== undefined; next = list.next(next, step.room))
              found.push(next);
            expect(found).toEqual(model.filter((entry) => fitsInto(entry.asks, entry.timeRequest, step.room)));
          }
          expect(list.size).toBe(model.length);
          expect(list.first()).toBe(model[0]);
        }
        expect([...list]).toEqual(model);
      }),
    );
  });

  it("keeps thousands in order that come in any order, and go in any order", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1e6), { minLength: 3000, maxLength: 3000 }), (ranks) => {
        const list = create();
        const added = new Map<number, Ranked>();
        for (const rank of ranks) {
          if (added.has(rank)) continue;
          const entry: Ranked = { asks: {}, timeRequest: 0, leaf: -1, rank };
          added.set(rank, entry);
          list.add(entry);
        }
        const left = [...added.keys()].toSorted((a, b) => a - b);
        expect(Array.from(list, ({ rank }) => rank)).toEqual(left);
        const even = left.filter((_, i) => i % 2 === 0);
        for (const rank of left) if (!even.includes(rank)) list.remove(added.get(rank)!);
        expect(Array.from(list, ({ rank }) => rank)).toEqual(even);
        for (const rank of even.slice(1)) list.remove(added.get(rank)!);
        expect(Array.from(list, ({ rank }) => rank)).toEqual(even.slice(0, 1));
      }),
      { numRuns: 5 },
    );
  });

  it("looks at none of 20,000 that do not fit to find the one that does", () => {
    let looks = 0;
    const list = create();
    for (let i = 0; i < 20_000; i += 1) {
      const asks = i === 15_000 ? { cpus: 1, red: 1 } : { cpus: 5 + (i % 100), red: i % 7 };
      const counted = {
        get asks() {
          looks += 1;
          return asks;
        },
        timeRequest: 0,
        leaf: -1,
        rank: i,
      };
      list.add(counted);
    }
    looks = 0;
    const room = { free: { cpus: 4, red: 3 }, seconds: Infinity, barred: NOTHING_BARRED };
    const found = list.next(undefined, room);
    expect(found?.rank).toBe(15_000);
    expect(list.next(found, room)).toBeUndefined();
    expect(looks).toBeLessThan(100);
  });
});
