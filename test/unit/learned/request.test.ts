import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type MemoryQuestion, chooseMemory, chooseTime, roomFor, rungsOf } from "../../../src/learned/request.ts";

const GIB = 2 ** 30;

/** What a ladder costs all these tasks, step by step. */
const costOf = (ladder: readonly number[], { peaks, above, free }: MemoryQuestion): number => {
  let cost = 0;
  for (const peak of Array.from(peaks).filter((each) => each > above))
    for (const amount of ladder) {
      cost += Math.max(amount, free);
      if (peak <= amount) break;
    }
  return cost;
};

/** All ladders of at most `attempts` of these amounts, each ending with the most there is if it ends too low. */
const ladders = (amounts: readonly number[], attempts: number, most: number): number[][] => {
  const top = amounts.at(-1) ?? 0;
  const all: number[][] = [[most]];
  const extend = (ladder: readonly number[], from: number): void => {
    for (let i = from; i < amounts.length; i += 1) {
      const longer = [...ladder, amounts[i]!];
      if (longer.length < attempts) all.push([...longer, most]);
      // nobody is left above the largest
      if (longer.length < attempts && amounts[i] === top) all.push(longer);
      if (longer.length < attempts) extend(longer, i + 1);
    }
  };
  extend([], 0);
  return all;
};

const question = fc.record({
  peaks: fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 12 }),
  above: fc.oneof(fc.constant(0), fc.nat(1200)),
  attempts: fc.integer({ min: 1, max: 4 }),
  most: fc.integer({ min: 500, max: 3000 }),
  free: fc.oneof(fc.constant(0), fc.nat(1500)),
});

describe("the memory to ask for", () => {
  it("costs no more than any other ladder of requests", () => {
    fc.assert(
      fc.property(question, (asked) => {
        const found = chooseMemory(asked);
        const { amounts, all } = rungsOf(asked);
        if (found === undefined) return void expect(all === 0 || asked.most <= asked.above).toBe(true);
        const costs = ladders(amounts, asked.attempts, asked.most).map((ladder) => costOf(ladder, asked));
        expect(found.cost).toBe(Math.min(...costs));
        expect(found.request).toBeGreaterThan(asked.above);
        expect(found.request).toBeLessThanOrEqual(asked.most);
      }),
      { numRuns: 1000 },
    );
  });

  it("is for the many where few need more, and for all where that costs less", () => {
    const peaks = (heavy: number): number[] => Array.from({ length: 100 }, (_, i) => (i < heavy ? 8 : 1) * GIB);
    const ask = (heavy: number, free = 0, above = 0): number | undefined =>
      chooseMemory({ peaks: peaks(heavy), above, attempts: above === 0 ? 3 : 2, most: 64 * GIB, free })?.request;
    expect([ask(1), ask(5), ask(20)]).toEqual([roomFor(GIB), roomFor(GIB), roomFor(GIB)]);
    expect(ask(95)).toBe(roomFor(8 * GIB));
    // killed with that: the next amount is for those that need more, not just twice as much
    expect(ask(5, 0, roomFor(GIB))).toBe(roomFor(8 * GIB));
    // nobody needed more than that so far
    expect(ask(5, 0, 20 * GIB)).toBeUndefined();
    // its cores bring 9 GiB along: nothing is gained by asking for less, and nobody is killed
    expect(ask(5, 9 * GIB)).toBe(9 * GIB);
  });

  it("leaves an eighth of room, in steps that make few different amounts", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 45 }), (peak) => {
        expect(roomFor(peak)).toBeGreaterThanOrEqual(peak * 1.125);
        expect(roomFor(peak)).toBeLessThanOrEqual(Math.ceil(peak * 1.125) * 1.125);
      }),
    );
    expect(new Set(Array.from({ length: 10_000 }, (_, i) => roomFor(GIB + i * 100_000))).size).toBeLessThan(12);
  });

  it("of time is what nearly all took, and a little more", () => {
    expect(chooseTime(Array.from({ length: 101 }, (_, i) => i * 1000))).toBe(105);
    expect(chooseTime([500])).toBe(1);
  });
});
