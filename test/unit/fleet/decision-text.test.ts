import { describe, expect, it } from "vitest";
import { decide } from "../../../src/fleet/decide.ts";
import { decisionText } from "../../../src/fleet/decision-text.ts";
import type { FleetSnapshot } from "../../../src/fleet/snapshot.ts";
import { demand as waiting, fleet as snapshot, policy } from "./snapshots.ts";

const said = (fleet: FleetSnapshot, cores?: number): string => {
  const decision = decide(fleet);
  return decisionText(fleet, decision, decision.start, { cores });
};

const demand = (tasks: number, cores: number) => [waiting(tasks, 8, { cores })];

describe("a decision in a sentence", () => {
  it("says what waits, what was asked for, and the limit", () => {
    const fleet = snapshot({ demand: demand(12, 2), policy: policy({ max: 2 }) });
    expect(said(fleet, 16)).toMatch(/^12 tasks wait for 24 cores; \d pilots? of 16 cores requested; limit 2$/);
    expect(said(snapshot({ demand: demand(1, 0.5), policy: policy({ max: 1 }) }), undefined)).toBe(
      "1 task waits for 0.5 cores; 1 pilot requested; limit 1",
    );
  });

  it("says why none was asked for", () => {
    expect(said(snapshot({ policy: policy({ max: 4 }) }))).toBe("no task waits; limit 4");
    const failing = snapshot({
      demand: demand(5, 1),
      starts: { total: 3, failed: 3, inARow: 3, sinceLast: 0 },
      policy: policy({ max: 4 }),
    });
    expect(said(failing)).toContain("none requested: 3 pilots in a row did not start");
  });
});
