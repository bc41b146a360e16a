import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { heartbeatFor, isSilent } from "../../../src/agent-links/heartbeat.ts";

describe("heartbeats", () => {
  it("come every five seconds, and less often from thousands: at most 500 in a second", () => {
    expect([0, 1, 2500].map(heartbeatFor)).toEqual([5000, 5000, 5000]);
    expect([2501, 10_000, 100_000].map(heartbeatFor)).toEqual([6000, 20_000, 200_000]);
    fc.assert(
      fc.property(fc.nat({ max: 1_000_000 }), (agents) => {
        expect(agents / (heartbeatFor(agents) / 1000)).toBeLessThanOrEqual(500);
        expect(heartbeatFor(agents + 1)).toBeGreaterThanOrEqual(heartbeatFor(agents));
      }),
    );
  });

  it("rule 5: silence is four of those that the agent was told", () => {
    expect([isSilent(20_000, 5000), isSilent(20_001, 5000)]).toEqual([false, true]);
    expect([isSilent(80_000, 20_000), isSilent(80_001, 20_000)]).toEqual([false, true]);
  });
});
