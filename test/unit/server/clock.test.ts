import { afterEach, describe, expect, it, vi } from "vitest";
import { clockAtStart, createClock } from "../../../src/server/clock.ts";
import { createDriver, group, spec } from "../core/model.ts";

afterEach(() => vi.useRealTimers());

describe("rule 10: time", () => {
  it("rule 10: a clock that steps an hour back or forward moves nothing", () => {
    const clock = createClock();
    const before = clock();
    for (const hours of [-1, 1, 24 * 365]) {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hours * 3_600_000 });
      expect(clock() - before).toBeGreaterThanOrEqual(0);
      expect(clock() - before).toBeLessThan(60_000);
      vi.useRealTimers();
    }
  });

  it("rule 10: a successor in the same boot goes on with its predecessor's clock while runs are under way", () => {
    const { state, submit, send } = createDriver();
    const mark = { at: 1_800_000_000_000, bootId: "boot", uptimeMs: 50_000 };
    const later = { bootId: "boot", uptimeMs: 60_000 };
    const due = mark.at + 10_000;
    const stepped = due + 1_500_000_000_000;
    state.lastStart = mark;
    expect(clockAtStart(state, later, stepped)).toBe(stepped);
    const run = submit(spec([group("a", 1)]));
    expect(clockAtStart(state, later, stepped)).toBe(due);
    expect(clockAtStart(state, later, 1000)).toBe(due);
    expect(clockAtStart(state, later, due + 500)).toBe(due + 500);
    // nothing is known of another boot, nor of a server that did not say
    expect(clockAtStart(state, { ...later, bootId: "another" }, stepped)).toBe(stepped);
    expect(clockAtStart(state, { bootId: "boot", uptimeMs: 1 }, stepped)).toBe(stepped);
    state.lastStart = { ...mark, bootId: "" };
    expect(clockAtStart(state, { ...later, bootId: "" }, stepped)).toBe(stepped);
    state.lastStart = null;
    expect(clockAtStart(state, later, stepped)).toBe(stepped);
    state.lastStart = mark;
    send({ type: "run.canceled", at: due, run: run.id, reason: "test" });
    expect(clockAtStart(state, later, stepped)).toBe(stepped);
  });
});
