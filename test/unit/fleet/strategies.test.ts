import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FleetPolicy, FleetSnapshot } from "../../../src/fleet/snapshot.ts";
import { STRATEGIES } from "../../../src/fleet/strategies.ts";
import { demand, fleet, pilot, pilots, policy } from "./snapshots.ts";

type Case = [string, Partial<FleetSnapshot>, { start: number; stop: number[] }];

const table = (strategy: FleetPolicy["strategy"], settings: Partial<FleetPolicy>, cases: readonly Case[]): void => {
  for (const [name, change, expected] of cases)
    it(name, () => {
      const { start, stop } = STRATEGIES[strategy](fleet({ policy: policy({ strategy, ...settings }), ...change }));
      expect({ start, stop }).toEqual(expected);
    });
};

describe("none", () => {
  table("none", {}, [
    ["starts nothing by itself, whatever waits", { demand: [demand(1000, 4)] }, { start: 0, stop: [] }],
    [
      "stops nothing, however idle",
      { pilots: pilots(3, { idleSeconds: 9999 }), idleSeconds: 9999 },
      { start: 0, stop: [] },
    ],
  ]);
});

describe("simple", () => {
  table("simple", { min: 1, max: 5 }, [
    ["1: nothing waits or runs, at min", { pilots: pilots(1), idleSeconds: 9999 }, { start: 0, stop: [] }],
    ["1: above min, but not idle for long enough", { pilots: pilots(3), idleSeconds: 119 }, { start: 0, stop: [] }],
    ["1: all above min go together", { pilots: pilots(3), idleSeconds: 120 }, { start: 0, stop: [1, 2] }],
    ["2: as many as the tasks need", { demand: [demand(9, 4)] }, { start: 3, stop: [] }],
    ["2: slots that are there count", { pilots: pilots(1), demand: [demand(9, 4)] }, { start: 2, stop: [] }],
    ["2: placed tasks count", { pilots: pilots(1, { used: 1 }), demand: [demand(4, 4)] }, { start: 1, stop: [] }],
    ["2: up to max", { pilots: pilots(2, { used: 1 }), demand: [demand(1000, 4)] }, { start: 3, stop: [] }],
    ["2: none at max", { pilots: pilots(5, { used: 1 }), demand: [demand(1000, 4)] }, { start: 0, stop: [] }],
    [
      "4: more slots than tasks are kept",
      { pilots: pilots(4, { used: 0.25, idleSeconds: 0 }) },
      { start: 0, stop: [] },
    ],
  ]);
});

describe("auto", () => {
  const idle = { idleSeconds: 120 };
  table("auto", { min: 1, max: 8 }, [
    ["grows like simple", { demand: [demand(9, 4)] }, { start: 3, stop: [] }],
    ["1: all above min go together", { pilots: pilots(3), idleSeconds: 120 }, { start: 0, stop: [1, 2] }],
    [
      "4: idle ones go, the longest idle first",
      { pilots: [pilot(1, { used: 1 }), pilot(2, { idleSeconds: 130 }), pilot(3, { idleSeconds: 500 })] },
      { start: 0, stop: [3, 2] },
    ],
    [
      "4: but not before their time",
      { pilots: [pilot(1, { used: 1 }), pilot(2, { idleSeconds: 119 })] },
      { start: 0, stop: [] },
    ],
    [
      "4: pending ones go first and at once, the newest before",
      { pilots: [pilot(1, { used: 0.5 }), pilot(2, idle), pilot(3, { pending: true }), pilot(4, { pending: true })] },
      { start: 0, stop: [4, 3, 2] },
    ],
    [
      "4: a busy one never goes",
      { pilots: [pilot(1, { used: 0.25 }), pilot(2, { used: 0.25 }), pilot(3, { used: 0.25 })] },
      { start: 0, stop: [] },
    ],
    ["4: not below min", { pilots: [pilot(1, idle)], demand: [] }, { start: 0, stop: [] }],
    [
      "4: only as many as are too many",
      {
        pilots: [pilot(1, { pending: true }), pilot(2, { pending: true }), pilot(3, { pending: true })],
        demand: [demand(5, 4)],
      },
      { start: 0, stop: [3] },
    ],
  ]);
  table("auto", { parallelism: 0.5 }, [
    ["half as many for half the parallelism", { demand: [demand(16, 4)] }, { start: 2, stop: [] }],
    ["B/a at p starts none", { pilots: pilots(2, { used: 1 }), demand: [demand(8, 4)] }, { start: 0, stop: [] }],
  ]);
  table("auto", { parallelism: 0 }, [
    ["3: without parallelism one, for any amount", { demand: [demand(1000, 4)] }, { start: 1, stop: [] }],
    ["3: and no second", { pilots: pilots(1, { pending: true }), demand: [demand(1000, 4)] }, { start: 0, stop: [] }],
  ]);
  table("auto", {}, [
    [
      "shapes add up in pilots: 8 of 8 and 2 of 4 slots are one and a half",
      { demand: [demand(8, 8), demand(2, 4)] },
      { start: 2, stop: [] },
    ],
    [
      "thirds make a whole, not one more",
      { demand: [demand(1, 3), demand(1, 3), demand(1, 3)] },
      { start: 1, stop: [] },
    ],
    [
      "a time-request that no pilot has left asks for a new one, though slots are free",
      { pilots: pilots(2, { remaining: 600, used: 0.1 }), demand: [demand(1, 4, { timeRequest: 3600 })] },
      { start: 1, stop: [] },
    ],
    [
      "a pilot with enough time left serves it",
      {
        pilots: [pilot(1, { remaining: 600, used: 0.1 }), pilot(2, { remaining: 7200 })],
        demand: [demand(1, 4, { timeRequest: 3600 })],
      },
      { start: 0, stop: [] },
    ],
    [
      "what is short of time does not make others go",
      {
        policy: policy({ max: 2 }),
        pilots: pilots(2, { remaining: 600, idleSeconds: 500 }),
        demand: [demand(1, 4, { timeRequest: 3600 })],
      },
      { start: 0, stop: [] },
    ],
  ]);
});

describe("simple and auto are Parsl's rules where all tasks have one shape", () => {
  const facts = fc.record({
    A: fc.integer({ min: 0, max: 500 }),
    B: fc.integer({ min: 0, max: 12 }),
    k: fc.integer({ min: 1, max: 64 }),
    p: fc.constantFrom(0, 0.25, 0.5, 1),
    min: fc.integer({ min: 0, max: 4 }),
    max: fc.integer({ min: 4, max: 12 }),
    idle: fc.constantFrom(0, 500),
  });
  it("for any numbers", () => {
    fc.assert(
      fc.property(
        facts,
        fc.constantFrom("simple" as const, "auto" as const),
        ({ A, B, k, p, min, max, idle }, strategy) => {
          const S = B * k;
          let [start, stop] = [0, 0];
          if (A === 0) stop = B > min && idle >= 120 ? B - min : 0;
          else if (S / A < p) start = B < max ? Math.min(Math.ceil(Math.ceil(A * p - S) / k), max - B) : 0;
          else if (S === 0) start = B < max ? 1 : 0;
          else if (S > A && strategy === "auto" && B > min)
            // ours keeps one while there is work
            stop = Math.min(Math.floor(Math.floor(S - A * p) / k), B - Math.max(min, 1));
          const made = STRATEGIES[strategy](
            fleet({
              policy: policy({ strategy, parallelism: p, min, max }),
              // all of it waits here, and the pilots are still pending: any of them may go
              pilots: pilots(B, { pending: true }),
              demand: A === 0 ? [] : [demand(A, k)],
              idleSeconds: idle,
            }),
          );
          expect([made.start, made.stop.length]).toEqual([start, Math.max(0, stop)]);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("adaptive", () => {
  table("adaptive", { targetDuration: 600, max: 20 }, [
    [
      "work over target: 1000 tasks of a minute on 4 slots are 15000 s, 25 pilots, at most max",
      { demand: [demand(1000, 4)] },
      { start: 20, stop: [] },
    ],
    ["100 such tasks need three", { demand: [demand(100, 4)] }, { start: 3, stop: [] }],
    ["never more than there are tasks for", { demand: [demand(2, 1, { expected: 9999 })] }, { start: 2, stop: [] }],
    ["short work needs one at least", { demand: [demand(3, 4, { expected: 0.1 })] }, { start: 1, stop: [] }],
    [
      "what runs counts as work",
      { pilots: pilots(1, { used: 1, occupancy: 500 }), demand: [demand(4, 4, { expected: 300 })] },
      { start: 1, stop: [] },
    ],
    [
      "pilots that are there count",
      { pilots: pilots(3, { pending: true }), demand: [demand(100, 4)] },
      { start: 0, stop: [] },
    ],
    [
      "a time-request asks for one that has it",
      { pilots: pilots(1, { remaining: 60, used: 0.1, occupancy: 5 }), demand: [demand(1, 4, { timeRequest: 3600 })] },
      { start: 1, stop: [] },
    ],
    ["one too many, for the first time", { pilots: pilots(2), demand: [] }, { start: 0, stop: [] }],
    [
      "for the third time in a row",
      { pilots: pilots(1, { idleSeconds: 3 }), suggested: new Map([[1, 2]]) },
      { start: 0, stop: [1] },
    ],
    [
      "pending ones are the first that are too many",
      { pilots: [pilot(1, { used: 1, occupancy: 60 }), pilot(2, { pending: true })], suggested: new Map([[2, 2]]) },
      { start: 0, stop: [2] },
    ],
  ]);
  it("counts the times in a row, and forgets who is needed again", () => {
    const first = STRATEGIES.adaptive(fleet({ policy: policy({ strategy: "adaptive" }), pilots: pilots(1) }));
    expect(first.suggested).toEqual(new Map([[1, 1]]));
    const busy = fleet({
      policy: policy({ strategy: "adaptive" }),
      pilots: pilots(1),
      demand: [demand(50, 4)],
      suggested: first.suggested!,
    });
    expect(STRATEGIES.adaptive(busy).suggested).toEqual(new Map());
  });
  it("keeps min", () => {
    const kept = fleet({
      policy: policy({ strategy: "adaptive", min: 2, waitCount: 1 }),
      pilots: pilots(3, { idleSeconds: 9 }),
    });
    expect(STRATEGIES.adaptive(kept).stop).toEqual([1]);
  });
});
