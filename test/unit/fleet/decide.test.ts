import { describe, expect, it } from "vitest";
import { type FleetDecision, decide } from "../../../src/fleet/decide.ts";
import { backoff } from "../../../src/fleet/failures.ts";
import type { FleetSnapshot, Starts } from "../../../src/fleet/snapshot.ts";
import { demand, fleet, pilots, policy } from "./snapshots.ts";

const starts = (change: Partial<Starts>): Starts => ({
  total: 0,
  failed: 0,
  inARow: 0,
  sinceLast: Infinity,
  ...change,
});
const work = [demand(5, 1)];

describe("fleet.decide", () => {
  const cases: [string, Partial<FleetSnapshot>, Partial<FleetDecision>][] = [
    ["nothing waits, nothing runs", {}, { start: 0, stop: [], problem: null }],
    ["tasks wait and there is no pilot", { policy: policy({ max: 1 }), demand: work }, { start: 1 }],
    ["min is reached upward without work", { policy: policy({ min: 2 }) }, { start: 2 }],
    ["min again, when one ended", { policy: policy({ min: 2 }), pilots: pilots(1) }, { start: 1 }],
    ["init at the first look only", { policy: policy({ init: 3 }), first: true }, { start: 3 }],
    ["not later", { policy: policy({ init: 3 }) }, { start: 0 }],
    ["init is clamped by max", { policy: policy({ init: 9, max: 4 }), first: true }, { start: 4 }],
    [
      "pilots found again count for init",
      { policy: policy({ init: 3 }), first: true, pilots: pilots(2) },
      { start: 1 },
    ],
    ["none starts init", { policy: policy({ strategy: "none", init: 2 }), first: true, demand: work }, { start: 2 }],
    ["and min with it", { policy: policy({ strategy: "none", init: 1, min: 2 }), first: true }, { start: 2 }],
    ["and nothing later", { policy: policy({ strategy: "none", min: 2 }), pilots: pilots(1) }, { start: 0 }],
    ["while nobody knows what a node has, one is tried", { known: false, demand: [demand(500, 1)] }, { start: 1 }],
    ["and only one", { known: false, demand: [demand(500, 1)], pilots: pilots(1, { pending: true }) }, { start: 0 }],
    [
      "nothing is started while the server stops",
      { demand: work, stopping: true },
      { start: 0, stop: [], problem: null },
    ],
    [
      "a failed start is followed by a pause that is told",
      { demand: work, starts: starts({ total: 3, failed: 3, inARow: 3, sinceLast: 1 }) },
      { start: 0, problem: "3 pilots in a row did not start; next try in 7 s" },
    ],
    [
      "and then by another try",
      { policy: policy({ max: 1 }), demand: work, starts: starts({ total: 3, failed: 3, inARow: 3, sinceLast: 9 }) },
      { start: 1 },
    ],
  ];
  for (const [name, change, expected] of cases) it(name, () => expect(decide(fleet(change))).toMatchObject(expected));

  it("never pauses longer than five minutes", () => {
    expect([0, 1, 2, 5, 20].map(backoff)).toEqual([0, 2, 4, 32, 300]);
  });
});

describe("fleet.decide gives tasks up", () => {
  const cases: [string, Partial<FleetSnapshot>, FleetDecision["giveUp"]][] = [
    ["never with pause", { demand: work, starts: starts({ total: 9, failed: 9, inARow: 9 }) }, null],
    [
      "simple: when all that were ever started failed",
      { policy: policy({ errorHandler: "simple" }), demand: work, starts: starts({ total: 1, failed: 1, inARow: 1 }) },
      "failures",
    ],
    [
      "simple: at least init of them",
      {
        policy: policy({ errorHandler: "simple", init: 3 }),
        demand: work,
        starts: starts({ total: 2, failed: 2, inARow: 2 }),
      },
      null,
    ],
    [
      "simple: not while one is under way",
      { policy: policy({ errorHandler: "simple" }), demand: work, starts: starts({ total: 3, failed: 2, inARow: 2 }) },
      null,
    ],
    ["simple: not before any was started", { policy: policy({ errorHandler: "simple" }), demand: work }, null],
    [
      "windowed: when the last three failed",
      {
        policy: policy({ errorHandler: "windowed" }),
        demand: work,
        starts: starts({ total: 40, failed: 5, inARow: 3 }),
      },
      "failures",
    ],
    [
      "windowed: not two",
      {
        policy: policy({ errorHandler: "windowed" }),
        demand: work,
        starts: starts({ total: 2, failed: 2, inARow: 2 }),
      },
      null,
    ],
    [
      "windowed: as many as configured",
      {
        policy: policy({ errorHandler: "windowed", window: 2 }),
        demand: work,
        starts: starts({ total: 2, failed: 2, inARow: 2 }),
      },
      "failures",
    ],
    [
      "only if something waits",
      { policy: policy({ errorHandler: "simple" }), starts: starts({ total: 1, failed: 1, inARow: 1 }) },
      null,
    ],
    [
      "none, all gone: fail as configured",
      { policy: policy({ strategy: "none", whenGone: "fail" }), demand: work },
      "gone",
    ],
    ["none, all gone: wait as configured", { policy: policy({ strategy: "none" }), demand: work }, null],
    [
      "none, not before the first look",
      { policy: policy({ strategy: "none", whenGone: "fail" }), demand: work, first: true },
      null,
    ],
  ];
  for (const [name, change, expected] of cases) it(name, () => expect(decide(fleet(change)).giveUp).toBe(expected));

  it("says that all pilots of none have ended", () => {
    expect(decide(fleet({ policy: policy({ strategy: "none" }), demand: work })).problem).toContain("have ended");
  });
});
