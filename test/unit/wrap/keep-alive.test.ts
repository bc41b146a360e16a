import { describe, expect, it } from "vitest";
import { keepAlive, type KeepAlive } from "../../../src/wrap/plan/keep-alive.ts";
import { afterFailure, NO_FAILURES } from "../../../src/wrap/plan/replacements.ts";

describe("keeping a cluster alive", () => {
  /** Seconds of activity (work, clients) in turn; the second in which it is over. */
  const over = (seconds: readonly (readonly [number, number])[], timeout: number): number => {
    let state: KeepAlive = {};
    for (const [at, [work, clients]] of seconds.entries()) {
      const verdict = keepAlive(state, { work, clients }, at * 1000, timeout);
      if (verdict.isOver) return at;
      state = verdict.state;
    }
    return -1;
  };
  const idle = Array.from({ length: 20 }, () => [0, 0] as const);

  it("row 002-55: work or clients forget the last activity, the first second without either sets it", () => {
    expect(keepAlive({}, { work: 0, clients: 0 }, 5000, 60).state).toEqual({ idleSince: 5000 });
    expect(keepAlive({ idleSince: 5000 }, { work: 0, clients: 0 }, 6000, 60).state).toEqual({ idleSince: 5000 });
    expect(keepAlive({ idleSince: 5000 }, { work: 1, clients: 0 }, 6000, 60).state).toEqual({});
    expect(keepAlive({ idleSince: 5000 }, { work: 0, clients: 1 }, 6000, 60).state).toEqual({});
  });

  it("row 002-56: over when it is more than the timeout ago; 0 is never", () => {
    expect(over(idle, 5)).toBe(6);
    expect(over([[1, 0], [0, 1], ...idle], 5)).toBe(8);
    expect(over([[0, 0], [0, 0], [0, 0], [0, 1], ...idle], 5)).toBe(10);
    expect(over(idle, 0)).toBe(-1);
  });

  it("jobs that fail are submitted again at once, then after pauses that grow", () => {
    let state = NO_FAILURES;
    const pauses = Array.from({ length: 6 }, () => (state = afterFailure(state, 0)).notBefore / 1000);
    expect(pauses).toEqual([0, 10, 60, 300, 300, 300]);
  });
});
