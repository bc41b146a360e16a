import { describe, expect, it } from "vitest";
import { type FleetSnapshot, backoff, decide } from "../../../src/fleet/decide.ts";

const calm: FleetSnapshot = {
  waiting: 0,
  live: 0,
  idle: [],
  min: 0,
  max: 1,
  idleSeconds: 120,
  startFailures: 0,
  sinceFailure: 0,
  stopping: false,
};

describe("fleet.decide", () => {
  const cases: [string, Partial<FleetSnapshot>, { start: number; drain: number[] }][] = [
    ["nothing waits, nothing runs", {}, { start: 0, drain: [] }],
    ["tasks wait and there is no pilot", { waiting: 5 }, { start: 1, drain: [] }],
    ["tasks wait and a pilot is on its way", { waiting: 5, live: 1 }, { start: 0, drain: [] }],
    ["min is reached upward without work", { min: 1 }, { start: 1, drain: [] }],
    ["an idle pilot goes after its time", { live: 1, idle: [{ pilot: 7, seconds: 121 }] }, { start: 0, drain: [7] }],
    ["but not before", { live: 1, idle: [{ pilot: 7, seconds: 119 }] }, { start: 0, drain: [] }],
    ["and not below min", { live: 1, min: 1, idle: [{ pilot: 7, seconds: 500 }] }, { start: 0, drain: [] }],
    ["nothing is started while the server stops", { waiting: 5, stopping: true }, { start: 0, drain: [] }],
    [
      "a failed start is followed by a pause",
      { waiting: 5, startFailures: 3, sinceFailure: 1 },
      { start: 0, drain: [] },
    ],
    ["and then by another try", { waiting: 5, startFailures: 3, sinceFailure: 9 }, { start: 1, drain: [] }],
  ];
  for (const [name, change, expected] of cases)
    it(name, () => expect(decide({ ...calm, ...change })).toMatchObject(expected));

  it("says why nothing is started", () => {
    expect(decide({ ...calm, waiting: 1, startFailures: 2, sinceFailure: 1 }).problem).toBe(
      "2 pilots in a row did not start; next try in 3 s",
    );
  });

  it("never pauses longer than five minutes", () => {
    expect([0, 1, 2, 5, 20].map(backoff)).toEqual([0, 2, 4, 32, 300]);
  });
});
