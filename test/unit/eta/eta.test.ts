import { describe, expect, it } from "vitest";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Run, shapeOf } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { type FleetFacts, type Places, capacityFor, waitsLeft } from "../../../src/eta/capacity.ts";
import { etaOf } from "../../../src/eta/eta.ts";
import { createExpected } from "../../../src/learned/expected.ts";
import { createLearned } from "../../../src/learned/learned.ts";
import type { Estimate } from "../../../src/eta/estimate.ts";
import { after, createDriver, group, spec } from "../core/model.ts";

const fleet = (more: Partial<FleetFacts> = {}): FleetFacts => ({
  name: "alps/normal",
  here: false,
  atOnce: () => 4,
  pending: [],
  waits: [],
  ...more,
});

const places = (atOnce: number, fleets: readonly FleetFacts[] = [], more: Partial<Places> = {}): Places => ({
  atOnce: () => atOnce,
  fleets: () => fleets,
  isOver: () => false,
  aheadMs: 0,
  ...more,
});

const shape = shapeOf(group("s", 1), { cpus: FRACTION });

describe("what a run can count on", () => {
  it("waits in the manager are drawn from at least 5 pilots of that queue, else nothing is said, and why", () => {
    const waits = [10, 20, 30, 40].map((s) => s * 1000);
    const unknown = capacityFor(shape, places(0, [fleet({ pending: [5000], waits })]));
    expect(unknown).toBe(
      "its pilots wait in the manager, and how long is not known: 4 of alps/normal have started so far, 5 are needed to tell",
    );
    const known = capacityFor(shape, places(0, [fleet({ pending: [25_000, 0], waits: [...waits, 50_000] })]));
    expect(known).toMatchObject({
      units: 0,
      arrivals: [
        { units: 1, waits: [5000, 15_000, 25_000] },
        { units: 1, waits: [...waits, 50_000] },
      ],
    });
    expect(waitsLeft(waits, 60_000)).toEqual([30_000]);
  });

  it("agents that are there count now, pilots that wait count when they come; this machine needs no wait", () => {
    const waits = [1, 2, 3, 4, 5];
    expect(capacityFor(shape, places(8, [fleet({ pending: [0], waits })]))).toMatchObject({
      units: 1,
      arrivals: [{ units: 0.5, waits }],
    });
    expect(capacityFor(shape, places(8, [fleet({ pending: [0], waits: [1] })]))).toMatchObject({ arrivals: [] });
    expect(capacityFor(shape, places(0, [fleet({ here: true })]))).toMatchObject({ units: 1, arrivals: [] });
    expect(capacityFor(shape, places(0, [fleet()]))).toMatch(/no pilot runs/);
  });
});

describe("the estimate of a run", () => {
  const expected = createExpected(createLearned(), { defaultCluster: "local", unknownMs: () => 60_000 });
  const driver = createDriver({ told: { ended: (run, row) => expected.taskEnded(run, row) } });
  const agent = driver.join();
  const submit = (...groups: GroupSpec[]): Run => {
    const run = driver.submit(spec(groups));
    expected.begin(run);
    return run;
  };

  it("says why there is none: nothing is known, or it waits for another run", () => {
    const run = submit(group("a", 10));
    expect(etaOf(run, 5000, expected, places(4))).toEqual({ reason: "nothing like its tasks has ended yet" });
    const later = submit(group("b", 2, { timeRequest: 10, after: [{ run: run.id, on: "any" }] }));
    expect(etaOf(later, 5000, expected, places(4))).toEqual({ reason: `it waits for run ${run.id}` });
    expect(etaOf(later, 5000, expected, places(4, [], { isOver: () => true }))).toHaveProperty("estimate");
  });

  it("of a graph of very many groups comes from the bounds, and is near what a replay says", () => {
    const wide = (width: number): Run =>
      submit(
        ...Array.from({ length: 1500 }, (_, i) =>
          group(`g${i}`, 1, { timeRequest: 10, after: i < width ? [] : after(i - width) }),
        ),
      );
    for (const width of [1, 10, 150]) {
      const run = wide(width);
      const [rough, replayed] = [true, false].map(
        (each) => (etaOf(run, 5000, expected, places(10), each) as { estimate: Estimate }).estimate,
      );
      expect(rough!.p50).toBeGreaterThanOrEqual(10_000 * Math.max(1500 / width, 150));
      expect(rough!.p50 / replayed!.p50).toBeGreaterThan(0.6);
      expect(rough!.p50 / replayed!.p50).toBeLessThan(1.7);
    }
  });

  it("needs one task that ended, or a time-request, or an earlier run of the same", () => {
    const run = submit(group("c", 10));
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 0);
    expect(etaOf(run, 5000, expected, places(4))).toHaveProperty("estimate");
    expect(etaOf(submit(group("c", 10)), 5000, expected, places(4))).toHaveProperty("estimate");
    const { estimate } = etaOf(submit(group("d", 8, { timeRequest: 100 })), 5000, expected, places(4)) as {
      estimate: { p50: number };
    };
    expect(estimate.p50).toBeGreaterThanOrEqual(200_000);
  });
});
