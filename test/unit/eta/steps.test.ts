import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { etaOf, etaSteps } from "../../../src/eta/eta.ts";
import type { Places } from "../../../src/eta/capacity.ts";
import { PIECE, type Steps, until, whole } from "../../../src/eta/steps.ts";
import { TURN_MS, createTurns } from "../../../src/eta/turns.ts";
import { createExpected } from "../../../src/learned/expected.ts";
import { createLearned } from "../../../src/learned/learned.ts";
import { after, createDriver, group, spec } from "../core/model.ts";

describe("an estimate in pieces", () => {
  it("a graph of 20,000 groups is looked at a few hundred groups at a time, and the result is that of one piece", () => {
    const known = createExpected(createLearned(), { defaultCluster: "local", unknownMs: () => 60_000 });
    const run = createDriver({}).submit(
      spec(Array.from({ length: 20_000 }, (_, i) => group(`g${i}`, 1, { after: i < 100 ? [] : after(i - 100) }))),
    );
    known.begin(run);
    run.groups[0]!.expectedMs = 5000;
    let looked = 0;
    const counted: Places = { atOnce: () => ((looked += 1), 8), fleets: () => [], isOver: () => false, aheadMs: 0 };
    const steps = etaSteps(run, 0, known, counted);
    let most = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) {
      most = Math.max(most, looked);
      looked = 0;
    }
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(PIECE);
    expect(step.value).toEqual(etaOf(run, 0, known, counted));
    expect(step.value).toHaveProperty("estimate");
  });
});

describe("an estimate of what ends meanwhile", () => {
  it("goes no further: the keys of a run that has ended are gone, and nobody wants to know", () => {
    let worked = 0;
    const work = function* (): Steps<string> {
      for (; worked < 10; worked += 1) yield;
      return "estimated";
    };
    expect(whole(until(work(), () => worked > 20, "over"))).toBe("estimated");
    worked = 0;
    expect(whole(until(work(), () => worked >= 3, "over"))).toBe("over");
    expect(worked).toBe(3);
  });
});

/** Pieces that take these times, then a result. */
function* pieces(times: readonly number[], clock: { now: number }, result: string): Steps<string> {
  for (const each of times) {
    clock.now += each;
    yield;
  }
  return result;
}

describe("turns", () => {
  it("a small estimate is there at once; of large ones, no turn takes longer than its time and one piece", () => {
    const arbTimes = fc.array(fc.integer({ min: 0, max: 8 }), { maxLength: 30 });
    fc.assert(
      fc.property(fc.array(arbTimes, { minLength: 1, maxLength: 5 }), (all) => {
        const clock = { now: 0 };
        const later: (() => void)[] = [];
        const turns = createTurns<string>(
          () => clock.now,
          (next) => later.push(next),
        );
        const found = new Map<number, { result: string; ms: number }>();
        for (const [run, times] of all.entries()) {
          turns.work(run, pieces(times, clock, `of ${run}`), (result, ms) => found.set(run, { result, ms }));
          const total = times.reduce((sum, each) => sum + each, 0);
          if (total < TURN_MS) expect(found.has(run)).toBe(true);
          expect(turns.isUnderWay(run)).toBe(!found.has(run));
        }
        while (later.length > 0) {
          expect(later).toHaveLength(1);
          const began = clock.now;
          later.shift()!();
          expect(clock.now - began).toBeLessThan(TURN_MS + 8);
        }
        for (const [run, times] of all.entries()) {
          expect(turns.isUnderWay(run)).toBe(false);
          expect(found.get(run)).toEqual({ result: `of ${run}`, ms: times.reduce((sum, each) => sum + each, 0) });
        }
      }),
    );
  });

  it("whole does all pieces", () => {
    const clock = { now: 0 };
    expect(whole(pieces([1, 2, 3], clock, "done"))).toBe("done");
    expect(clock.now).toBe(6);
  });
});
