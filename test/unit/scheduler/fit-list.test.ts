import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Resources } from "../../../src/core/resources.ts";
import type { Shape } from "../../../src/core/run.ts";
import { type Entry, NOTHING_BARRED, type Room, createFitList, fitsInto } from "../../../src/scheduler/fit-list.ts";

const shape = (resources: Resources, timeRequest = 0): Shape => ({
  key: JSON.stringify([resources, timeRequest]),
  resources,
  timeRequest,
  cluster: undefined,
  queue: undefined,
  ranks: undefined,
});

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
  | { readonly do: "push"; readonly resources: Resources; readonly time: number }
  | { readonly do: "remove"; readonly which: number }
  | { readonly do: "walk"; readonly room: Room };

const arbStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("push" as const), resources: arbResources, time: fc.nat(9) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("remove" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("walk" as const), room: arbRoom }) },
);

describe("a list of what may fit", () => {
  it("finds in order exactly those that fit, whatever came and went", () => {
    fc.assert(
      fc.property(fc.array(arbStep, { minLength: 1, maxLength: 400 }), (steps) => {
        const list = createFitList<Entry>();
        const model: Entry[] = [];
        for (const step of steps) {
          if (step.do === "push") {
            const entry: Entry = { shape: shape(step.resources, step.time), at: -1 };
            list.push(entry);
            model.push(entry);
          } else if (step.do === "remove" && model.length > 0) {
            const [entry] = model.splice(step.which % model.length, 1);
            list.remove(entry!);
            list.remove(entry!);
          } else if (step.do === "walk") {
            const found: Entry[] = [];
            for (let next = list.next(0, step.room); next !== undefined; next = list.next(next.at + 1, step.room))
              found.push(next);
            expect(found).toEqual(model.filter((entry) => fitsInto(entry.shape, step.room)));
          }
          expect(list.size).toBe(model.length);
          expect(list.first()).toBe(model[0]);
        }
        expect([...list]).toEqual(model);
      }),
    );
  });

  it("looks at none of 20,000 that do not fit to find the one that does", () => {
    let looks = 0;
    const list = createFitList<Entry>();
    for (let i = 0; i < 20_000; i += 1) {
      const resources = i === 15_000 ? { cpus: 1, red: 1 } : { cpus: 5 + (i % 100), red: i % 7 };
      const counted = {
        ...shape({}),
        get resources() {
          looks += 1;
          return resources;
        },
      };
      list.push({ shape: counted, at: -1 });
    }
    looks = 0;
    const room = { free: { cpus: 4, red: 3 }, seconds: Infinity, barred: NOTHING_BARRED };
    const found = list.next(0, room);
    expect(found?.at).toBe(15_000);
    expect(list.next(15_001, room)).toBeUndefined();
    expect(looks).toBeLessThan(100);
  });
});
