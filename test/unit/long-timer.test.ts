import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { repeatTimer, startTimer } from "../../src/long-timer.ts";

const DAY = 86_400_000;

describe("a timer that may be longer than Node's own", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each([0, 1, 2 ** 31 - 1, 2 ** 31, 30 * DAY, 100 * 365 * DAY])("calls back once, after %i ms", (ms) => {
    let calls = 0;
    startTimer(ms, () => (calls += 1));
    vi.advanceTimersByTime(Math.max(0, ms - 1));
    expect(calls).toBe(ms === 0 ? 1 : 0);
    vi.advanceTimersByTime(1);
    expect(calls).toBe(1);
    vi.advanceTimersByTime(60 * DAY);
    expect([calls, vi.getTimerCount()]).toEqual([1, 0]);
  });

  it("what is overdue happens at once", () => {
    let calls = 0;
    startTimer(-5, () => (calls += 1));
    vi.advanceTimersByTime(0);
    expect(calls).toBe(1);
  });

  it("can be stopped, also after it was armed again", () => {
    let calls = 0;
    const timer = startTimer(90 * DAY, () => (calls += 1));
    vi.advanceTimersByTime(60 * DAY);
    timer.stop();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(60 * DAY);
    expect(calls).toBe(0);
  });

  it("repeats until it is stopped, by its own action too", () => {
    let calls = 0;
    const timer = repeatTimer(30 * DAY, () => {
      calls += 1;
      if (calls === 3) timer.stop();
    });
    vi.advanceTimersByTime(30 * DAY - 1);
    expect(calls).toBe(0);
    vi.advanceTimersByTime(1);
    expect(calls).toBe(1);
    vi.advanceTimersByTime(300 * DAY);
    expect([calls, vi.getTimerCount()]).toEqual([3, 0]);
  });
});
