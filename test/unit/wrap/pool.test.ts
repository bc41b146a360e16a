import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jobOfWorker } from "../../../src/wrap/head.ts";
import {
  afterWait,
  decidePool,
  isExpiring,
  type PoolView,
  type Surplus,
  SURPLUS_MS,
  wantedOf,
} from "../../../src/wrap/plan/pool.ts";

const NEVER = { notBefore: 0 };
const view = (change: Partial<PoolView>): PoolView => ({
  target: 0,
  minimum: 0,
  maximum: 10,
  perJob: 1,
  coming: 0,
  connected: 0,
  expiring: 0,
  ...change,
});
const start = (change: Partial<PoolView>): number => decidePool(view(change), undefined, 0, NEVER).start;

describe("how many workers a pool starts and lets go", () => {
  it("goes up at once, between minimum and maximum, in whole jobs", () => {
    expect(start({ target: 4 })).toBe(4);
    expect(start({ target: 4, coming: 1, connected: 2 })).toBe(1);
    expect(start({ target: 40 })).toBe(10);
    expect(start({ minimum: 2 })).toBe(2);
    expect(start({ target: 5, perJob: 4 })).toBe(8);
    expect(wantedOf(view({ target: 100, maximum: 3, perJob: 4 }))).toBe(12);
  });

  it("starts nothing before a pause is over", () => {
    const wants = view({ target: 2 });
    expect(decidePool(wants, undefined, 999, { notBefore: 1000 }).start).toBe(0);
    expect(decidePool(wants, undefined, 1000, { notBefore: 1000 }).start).toBe(2);
  });

  it("replaces ahead those that expire, and does not let others go for them", () => {
    expect(start({ target: 2, connected: 2, expiring: 1 })).toBe(1);
    expect(start({ target: 2, connected: 2, coming: 1, expiring: 1 })).toBe(0);
    // nothing waits: the one that expires is not replaced
    expect(start({ target: 0, connected: 1, expiring: 1 })).toBe(0);
    expect(decidePool(view({ target: 1, connected: 2, expiring: 1 }), { since: 0, least: 1 }, 9999, NEVER)).toEqual({
      start: 0,
      cancel: 0,
      retire: 0,
      surplus: undefined,
    });
  });

  it("goes down only after a while, by the fewest that were too many, those that have not come first", () => {
    const many = view({ target: 1, coming: 1, connected: 4 });
    const first = decidePool(many, undefined, 0, NEVER);
    expect(first).toMatchObject({ cancel: 0, retire: 0, surplus: { since: 0, least: 4 } });
    const second = decidePool({ ...many, target: 2 }, first.surplus, 1000, NEVER);
    expect(second.surplus).toEqual({ since: 0, least: 3 });
    expect(decidePool(many, second.surplus, SURPLUS_MS, NEVER)).toMatchObject({ cancel: 1, retire: 2 });
    // needed again in between: it begins anew
    expect(decidePool({ ...many, target: 5 }, second.surplus, SURPLUS_MS, NEVER).surplus).toBeUndefined();
  });

  it("cancels whole jobs too; that whole jobs are let go is the head's part", () => {
    const few = view({ target: 1, perJob: 4, coming: 3, connected: 4 });
    expect(decidePool(few, { since: 0, least: 9 }, SURPLUS_MS, NEVER)).toMatchObject({ retire: 3, cancel: 0 });
    const more = view({ target: 1, perJob: 4, coming: 5, connected: 4 });
    expect(decidePool(more, { since: 0, least: 9 }, SURPLUS_MS, NEVER)).toMatchObject({ retire: 1, cancel: 4 });
  });

  const anyView = fc.record({
    target: fc.nat(50),
    minimum: fc.nat(5),
    maximum: fc.integer({ min: 5, max: 20 }),
    perJob: fc.integer({ min: 1, max: 5 }),
    coming: fc.nat(30),
    connected: fc.nat(30),
    expiring: fc.nat(30),
  });
  const anySurplus = fc.option(fc.record({ since: fc.nat(5000), least: fc.integer({ min: 1, max: 30 }) }), {
    nil: undefined,
  });

  it("whatever it sees: never up and down at once, never above the most, never below the least", () => {
    fc.assert(
      fc.property(anyView, anySurplus, fc.nat(20_000), (any, surplus, now) => {
        const seen = { ...any, expiring: Math.min(any.expiring, any.connected) };
        const { start: up, cancel, retire } = decidePool(seen, surplus, now, NEVER);
        const staying = seen.coming + seen.connected - seen.expiring;
        expect(up === 0 || cancel + retire === 0).toBe(true);
        if (up > 0) expect(staying + up).toBe(wantedOf(seen));
        expect(wantedOf(seen)).toBeLessThanOrEqual(seen.maximum * seen.perJob);
        expect(cancel).toBeLessThanOrEqual(seen.coming);
        if (cancel + retire > 0)
          expect(staying - cancel - retire).toBeGreaterThanOrEqual(
            Math.max(wantedOf(seen), seen.minimum * seen.perJob),
          );
      }),
    );
  });

  it("settles: a pool whose target stays has exactly what is wanted, and then nothing changes", () => {
    fc.assert(
      fc.property(anyView, (any) => {
        let { coming, connected } = any;
        let surplus: Surplus | undefined;
        const at = { ...any, expiring: 0 };
        let last = { start: 1, cancel: 0, retire: 0 };
        for (let now = 0; now < 20_000; now += 1000) {
          const decision = decidePool({ ...at, coming, connected }, surplus, now, NEVER);
          ({ surplus } = decision);
          last = decision;
          // whole jobs only
          const gone = Math.floor(decision.retire / at.perJob) * at.perJob;
          connected += coming - decision.cancel - gone;
          coming = decision.start;
        }
        expect([last.start, last.cancel, Math.floor(last.retire / at.perJob)]).toEqual([0, 0, 0]);
        expect(connected - wantedOf(at)).toBeGreaterThanOrEqual(0);
        expect(connected - wantedOf(at)).toBeLessThan(at.perJob);
      }),
    );
  });
});

describe("when a worker expires", () => {
  it("as long before its pilot takes nothing new as others had to wait, and a moment to start", () => {
    expect(isExpiring(undefined, 0, 0)).toBe(false);
    expect(isExpiring(100_000, 60_000, 30_000)).toBe(false);
    expect(isExpiring(100_000, 60_000, 36_000)).toBe(true);
    // ten minutes at most
    expect(isExpiring(3_600_000, 7_200_000, 2_000_000)).toBe(false);
    expect(isExpiring(3_600_000, 7_200_000, 3_100_000)).toBe(true);
  });

  it("waits are averaged", () => {
    expect(afterWait(undefined, 1000)).toBe(1000);
    expect(afterWait(1000, 2000)).toBeCloseTo(1300);
  });
});

it("a worker's name tells its pilot and its run; others' names tell nothing", () => {
  expect(jobOfWorker("p3-17")).toEqual({ pilot: 3, run: 17 });
  for (const name of ["", "p3", "3-17", "p3-17-0", "tcp://1.2.3.4:5", "p-1"]) expect(jobOfWorker(name)).toBeUndefined();
});
