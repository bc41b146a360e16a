import { describe, expect, it } from "vitest";
import { clockText, daskDuration, daskSeconds, minutesText } from "../../../src/wrap/plan/durations.ts";

/** Row 002-37. The left column is what `dask.utils.parse_timedelta` of 2026.8 says, where it says anything. */
describe("row 002-37: durations as parse_timedelta reads them", () => {
  it.each([
    ["3s", 3],
    ["3.5 seconds", 3.5],
    ["300ms", 0.3],
    ["20 minutes", 1200],
    ["4m", 240],
    ["1h", 3600],
    ["1.5 hours", 5400],
    ["2 days", 172_800],
    ["1w", 604_800],
    ["90", 90],
    [90, 90],
    // clocks and several units: Dask does not read these
    ["00:30:00", 1800],
    ["1-00:00:00", 86_400],
    ["100:00:00", 360_000],
    ["1h30m", 5400],
  ])("%s", (text, seconds) => expect(daskSeconds(text)).toBeCloseTo(seconds, 9));

  it.each(["", "soon", "-60s", "00:30", "00:61:00", "4 parsecs", "constructor", true, null, {}, "9".repeat(200)])(
    "%j is refused",
    (value) => expect(() => daskSeconds(value)).toThrow(RangeError),
  );

  it("Dask gets words that it reads", () => {
    expect(["1m", "20 minutes", "90", 90, "00:30:00", "1h30m"].map(daskDuration)).toEqual([
      "1m",
      "20 minutes",
      "90s",
      "90s",
      "1800s",
      "5400s",
    ]);
  });

  it("managers get HH:MM:SS, LSF HH:MM", () => {
    expect([clockText(5400), clockText(86_400 + 1), minutesText(61)]).toEqual(["01:30:00", "24:00:01", "00:02"]);
  });
});
