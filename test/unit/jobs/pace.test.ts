import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPace } from "../../../src/jobs/pace.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Work that takes so many milliseconds of a clock that only it and the test move. */
const paced = (tookMs: () => number) => {
  let now = 0;
  let done = 0;
  const { due } = createPace(
    () => {
      done += 1;
      now += tookMs();
    },
    () => now,
  );
  const pass = (ms: number): void => {
    now += ms;
    vi.advanceTimersByTime(ms);
  };
  return { due, pass, done: () => done };
};

describe("work that looks at everything", () => {
  it("is done whenever it is asked for while it takes next to nothing", () => {
    const { due, done } = paced(() => 0.1);
    for (let i = 0; i < 100; i += 1) due();
    expect(done()).toBe(100);
  });

  it("takes a twentieth of the time at most, and what came meanwhile is done once, in the end", () => {
    const { due, pass, done } = paced(() => 10);
    for (let i = 0; i < 1000; i += 1) {
      due();
      pass(1);
    }
    // a turn of 10 ms in every 200 ms, of which 190 pass here
    expect([done() >= 5, done() <= 6]).toEqual([true, true]);
    const before = done();
    due();
    pass(1000);
    expect(done()).toBe(before + 1);
    pass(1000);
    expect(done()).toBe(before + 1);
  });
});
