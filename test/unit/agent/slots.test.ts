import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pinnableCpus, SlotPool, type Slot } from "../../../src/agent/slots.ts";
import { FRACTION, toUnits, type Resources } from "../../../src/core/resources.ts";

const units = (amounts: Record<string, number>): Resources =>
  Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, toUnits(name, value)]));

const pool = (amounts: Record<string, number>, cpus = [0, 1, 2, 3], gpus = ["0", "1", "2", "3"]): SlotPool =>
  new SlotPool({ capacity: units(amounts), cpus, gpus });

describe("SlotPool.allocate", () => {
  it("gives distinct cores and devices, the lowest first", () => {
    const slots = pool({ cpus: 4, gpus: 2, mem: 100 });
    const first = slots.allocate(units({ cpus: 1, gpus: 1, mem: 60 }))!;
    expect(first.cpus).toEqual([0]);
    expect(first.gpus).toEqual([{ index: "0", fraction: FRACTION }]);
    expect(slots.allocate(units({ cpus: 1, mem: 60 }))).toBeUndefined();
    expect(slots.allocate(units({ cpus: 3 }))!.cpus).toEqual([1, 2, 3]);
    expect(slots.allocate(units({ cpus: 1 }))).toBeUndefined();
    slots.release(first);
    expect(slots.allocate(units({ cpus: 1, mem: 100 }))!.cpus).toEqual([0]);
  });

  it("takes nothing when one resource is short", () => {
    const slots = pool({ cpus: 4, gpus: 1, licence: 1 });
    slots.allocate(units({ gpus: 0.5 }));
    expect(slots.allocate(units({ cpus: 2, licence: 1, gpus: 1 }))).toBeUndefined();
    expect(slots.available()).toEqual(units({ cpus: 4, gpus: 0.5, licence: 1 }));
    expect(slots.allocate(units({ unheard: 1 }))).toBeUndefined();
  });

  it("puts fractions on the fullest device that has room, and leaves whole ones whole", () => {
    const slots = pool({ gpus: 3 });
    const index = (amount: number): string => slots.allocate(units({ gpus: amount }))!.gpus[0]!.index;
    expect(index(0.5)).toBe("0");
    expect(index(0.75)).toBe("1");
    expect(index(0.25)).toBe("1");
    expect(index(0.5)).toBe("0");
    expect(index(1)).toBe("2");
    expect(slots.allocate(units({ gpus: 0.1 }))).toBeUndefined();
  });

  it("adds up fractions exactly", () => {
    for (const [fraction, count] of [
      [0.1, 10],
      [0.25, 4],
      [0.0001, 10_000],
    ] as const) {
      const slots = pool({ cpus: 1 });
      const held: Slot[] = [];
      for (let nth = 0; nth < count; nth++) held.push(slots.allocate(units({ cpus: fraction }))!);
      expect(held.every((slot) => slot.cpus[0] === 0)).toBe(true);
      expect(slots.allocate(units({ cpus: 0.0001 }))).toBeUndefined();
      for (const slot of held) slots.release(slot);
      expect(slots.allocate(units({ cpus: 1 }))!.cpus).toEqual([0]);
    }
  });

  it("gives a mixed amount as whole devices and one share", () => {
    const slots = pool({ cpus: 3, gpus: 1.5 });
    const slot = slots.allocate(units({ cpus: 2.5, gpus: 1.5 }))!;
    expect(slot.cpus).toEqual([0, 1, 2]);
    expect(slot.gpus).toEqual([
      { index: "0", fraction: FRACTION },
      { index: "1", fraction: 0.5 * FRACTION },
    ]);
    expect(slots.allocate(units({ cpus: 0.5 }))!.cpus).toEqual([2]);
  });

  it("has virtual cores, never pinned, where more are declared than exist", () => {
    const slots = pool({ cpus: 4 }, [6, 7]);
    const slot = slots.allocate(units({ cpus: 3 }))!;
    expect(slot.cpus).toEqual([6, 7, -1]);
    expect(pinnableCpus(slot)).toEqual([]);
    slots.release(slot);
    expect(pinnableCpus(slots.allocate(units({ cpus: 2 }))!)).toEqual([6, 7]);
  });

  it("refuses amounts that would make room, and indices that do not exist", () => {
    expect(() => pool({ cpus: 1 }).allocate({ cpus: -1 })).toThrow("-1 units of cpus");
    expect(() => pool({ cpus: 1 }).allocate({ mem: Number.NaN })).toThrow("NaN");
    expect(() => pool({ gpus: 2 }, [], ["0"])).toThrow("2 gpus");
  });

  it("is not disturbed by a second release", () => {
    const slots = pool({ cpus: 1, mem: 10 });
    const slot = slots.allocate(units({ cpus: 1, mem: 10 }))!;
    slots.release(slot);
    slots.release(slot);
    expect(slots.available()).toEqual(units({ cpus: 1, mem: 10 }));
    expect(slots.size).toBe(0);
  });

  it("knows what could fit if nothing ran", () => {
    const slots = pool({ cpus: 2.5, mem: 10 });
    slots.allocate(units({ cpus: 2.5, mem: 10 }));
    expect(slots.couldFit(units({ cpus: 2.5, mem: 10 }))).toBe(true);
    expect(slots.couldFit(units({ cpus: 1.75 }))).toBe(true);
    expect(slots.couldFit(units({ cpus: 2.75 }))).toBe(false);
    expect(pool({ cpus: 2.5 }).couldFit(units({ cpus: 2.4 }))).toBe(true);
    expect(slots.couldFit({ mem: 11 })).toBe(false);
    expect(slots.couldFit({ gpus: 1 })).toBe(false);
    expect(slots.couldFit({ constructor: 1 })).toBe(false);
  });
});

describe("properties of SlotPool", () => {
  const step = fc.oneof(
    fc.record({
      cpus: fc.constantFrom(0, 0.1, 0.25, 0.5, 1, 1.5, 2, 3),
      gpus: fc.constantFrom(0, 0, 0.1, 0.25, 0.75, 1, 2.25),
      mem: fc.nat(50),
    }),
    fc.nat(1000),
  );

  it("never gives more than there is, never shares a whole device, and gets everything back", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2.5, 4, 40),
        fc.constantFrom(0, 1.25, 3),
        fc.array(step, { maxLength: 120 }),
        (cpus, gpus, steps) => {
          const capacity = units({ cpus, gpus, mem: 200 });
          const empty = pool({ cpus, gpus, mem: 200 }).available();
          const slots = pool({ cpus, gpus, mem: 200 });
          const held: Slot[] = [];
          for (const each of steps) {
            if (typeof each === "number") {
              if (held.length > 0) slots.release(held.splice(each % held.length, 1)[0]!);
            } else {
              const request = units(each);
              const slot = slots.allocate(request);
              if (slot !== undefined) held.push(slot);
              else expect(held.length > 0 || !slots.couldFit(request)).toBe(true);
            }
            const load = new Map<string, number>();
            const sums: Record<string, number> = { cpus: 0, gpus: 0, mem: 0 };
            for (const { amounts, cpus: cores, gpus: devices } of held) {
              for (const name in amounts) sums[name]! += amounts[name]!;
              expect(new Set(cores).size).toBe(cores.length);
              expect(cores.length).toBe(Math.ceil(amounts["cpus"]! / FRACTION));
              cores.forEach((core, nth) => {
                const whole = (nth + 1) * FRACTION <= amounts["cpus"]!;
                const taken = whole ? FRACTION : amounts["cpus"]! % FRACTION;
                load.set(`c${core}`, (load.get(`c${core}`) ?? 0) + taken);
              });
              for (const { index, fraction } of devices) load.set(`g${index}`, (load.get(`g${index}`) ?? 0) + fraction);
            }
            for (const name in sums) expect(sums[name]).toBeLessThanOrEqual(capacity[name]!);
            for (const amount of load.values()) expect(amount).toBeLessThanOrEqual(FRACTION);
            const free = slots.available();
            for (const name in sums) expect(free[name]).toBe(capacity[name]! - sums[name]!);
          }
          for (const slot of held) slots.release(slot);
          expect(slots.available()).toEqual(empty);
          const whole = slots.allocate(capacity)!;
          expect(whole.cpus.length).toBe(Math.ceil(cpus));
        },
      ),
      { numRuns: 300 },
    );
  });
});
