import { afterEach, describe, expect, it, vi } from "vitest";
import { createExitTimes, createNodeClock } from "../../../src/agent/node-clock.ts";

const STEP = 1_500_000_000_000;

/** Shifts the wall clock of this process by this much. */
const step = (ms: number): void => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

afterEach(() => vi.useRealTimers());

/** Like a spawner's: set when it started, then monotonic. */
const spawnerClock = (off: number): (() => number) => {
  const start = Date.now() + off - performance.now();
  return () => start + performance.now();
};

describe("rule 10: the times an agent tells", () => {
  it("rule 10: are its server's, whatever the wall clock of its node says and does", () => {
    step(-STEP);
    const clock = createNodeClock();
    vi.useRealTimers();
    const server = Date.now();
    clock.adopt(server);
    for (const ms of [STEP, -STEP]) {
      step(ms);
      expect(clock.now() - server).toBeGreaterThanOrEqual(-1);
      expect(clock.now() - server).toBeLessThan(60_000);
      vi.useRealTimers();
    }
    // a server that sends nothing, or nonsense, changes nothing
    for (const nothing of [undefined, NaN, 0, -5, Infinity]) clock.adopt(nothing);
    expect(clock.now() - server).toBeLessThan(60_000);
  });

  it.each([0, STEP, -STEP])(
    "rule 10: an attempt is as long as its spawner measured it, with its clock off by %i ms",
    (off) => {
      const clock = createNodeClock();
      const server = Date.now() + 7_000_000;
      clock.adopt(server);
      const timesOf = createExitTimes(clock);
      const spawner = {};
      const now = spawnerClock(off);
      for (const took of [0, 1.25, 5000]) {
        const endedAt = now();
        const { started, finished } = timesOf(spawner, { startedAt: endedAt - took, endedAt });
        expect(finished - started).toBeCloseTo(took, 2);
        expect(Math.abs(finished - server)).toBeLessThan(60_000);
      }
      // its clock went backward after all: no negative time
      const endedAt = now();
      const back = timesOf(spawner, { startedAt: endedAt + 10, endedAt });
      expect(back.finished - back.started).toBe(0);
      // what never started has no time on a spawner's clock
      const never = timesOf({}, { startedAt: 0, endedAt: 0 });
      expect(Math.abs(never.finished - server)).toBeLessThan(60_000);
    },
  );
});
