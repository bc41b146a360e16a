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

  it("those that repeat meet at the multiples of their periods, in one wake-up", () => {
    const calls: string[] = [];
    vi.advanceTimersByTime(300);
    const one = repeatTimer(1000, () => calls.push("one"));
    vi.advanceTimersByTime(400);
    const five = repeatTimer(5000, () => calls.push("five"));
    const other = repeatTimer(5000, () => {
      calls.push("other");
      five.stop();
    });
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(4299);
    expect(calls).toEqual(["one", "one", "one", "one"]);
    vi.advanceTimersByTime(1);
    expect(calls.slice(4)).toEqual(["one", "five", "other"]);
    one.stop();
    vi.advanceTimersByTime(5000);
    expect(calls.slice(7)).toEqual(["other"]);
    other.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
