import { afterEach, describe, expect, it, vi } from "vitest";
import { createClock } from "../../../src/server/clock.ts";

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
});
