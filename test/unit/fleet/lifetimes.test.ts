import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LifetimeInput, lifetimeOf } from "../../../src/fleet/lifetimes.ts";

const input = (change: Partial<LifetimeInput>): LifetimeInput => ({
  walltime: undefined,
  signal: "SIGTERM",
  signalBefore: 30,
  ...change,
});

describe("fleet.lifetimes", () => {
  it("of four hours: from 5 to 1 minutes before the end nothing new is taken, the signal 30 s before the last 15", () => {
    const { drainMs, ...rest } = lifetimeOf(1, input({ walltime: 14_400 }))!;
    expect(rest).toEqual({ signalMs: 14_355_000, endMs: 14_385_000, signal: "SIGTERM" });
    expect(drainMs).toBeGreaterThanOrEqual(14_100_000);
    expect(drainMs).toBeLessThan(14_340_000);
  });

  it("without a walltime there is no end, unless a lifetime says when to take nothing new", () => {
    expect(lifetimeOf(1, input({}))).toBeUndefined();
    expect(lifetimeOf(1, input({ lifetime: 60 }))).toEqual({
      drainMs: 60_000,
      signalMs: null,
      endMs: null,
      signal: "SIGTERM",
    });
  });

  it("a longer notice begins earlier", () => {
    expect(lifetimeOf(1, input({ walltime: 14_400, signalBefore: 600 }))).toMatchObject({
      signalMs: 13_785_000,
      endMs: 14_385_000,
    });
  });

  it("a configured lifetime and stagger are taken, but never beyond the signal", () => {
    expect(lifetimeOf(7, input({ walltime: 14_400, lifetime: 3600, stagger: 0 }))!.drainMs).toBe(3_600_000);
    expect(lifetimeOf(7, input({ walltime: 14_400, lifetime: 99_999 }))!.drainMs).toBe(14_355_000);
  });

  it("is never over at once, and never beyond the walltime, however short that is", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.double({ min: 1, max: 1e6, noNaN: true }),
        fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
        fc.double({ min: 0, max: 1e5, noNaN: true }),
        (pilot, walltime, stagger, signalBefore) => {
          const life = lifetimeOf(pilot, input({ walltime, stagger, signalBefore }))!;
          expect(life.drainMs).toBeGreaterThan(walltime * 100);
          expect(life.drainMs).toBeLessThanOrEqual(life.signalMs!);
          expect(life.signalMs!).toBeLessThanOrEqual(life.endMs!);
          expect(life.endMs!).toBeLessThan(walltime * 1000);
        },
      ),
    );
  });

  it("spreads pilots that start together over the whole stagger, always in the same way", () => {
    const drains = Array.from({ length: 100 }, (_, i) => lifetimeOf(i + 1, input({ walltime: 14_400 }))!.drainMs);
    const slices = new Set(drains.map((ms) => Math.floor((ms - 14_100_000) / 24_000)));
    expect(slices.size).toBe(10);
    expect(lifetimeOf(42, input({ walltime: 14_400 }))!.drainMs).toBe(drains[41]);
  });
});
