import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Group, Run } from "../../../src/core/run.ts";
import { holdBack } from "../../../src/scheduler/held-back.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createDriver, group, spec } from "../core/model.ts";

/** A scheduler that only notes what it is given, and groups of which more and more may go. */
const start = (counts: readonly number[]) => {
  const driver = createDriver();
  const run: Run = driver.submit(spec(counts.map((count, i) => group(`g${i}`, count))));
  const may = new Map<Group, number>(run.groups.map((each) => [each, 0]));
  let given: number[] = [];
  const inner = {
    ...createScheduler(),
    ready: (_run: Run, from: number, count: number) => {
      for (let row = from; row < from + count; row += 1) given.push(row);
    },
    unqueue: () => void (given = []),
  };
  const began: Group[] = [];
  const holding = holdBack(inner, (_run, each) => may.get(each)!);
  holding.onHeld = (_run, each) => began.push(each);
  return { driver, run, may, holding, began, given: () => given };
};

describe("groups whose first tasks go alone", () => {
  it("every task goes once, in whatever parts it is ready and released, also when all is queued anew", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("release" as const), of: fc.nat(3), more: fc.nat(30) }),
      fc.record({ kind: fc.constant("requeue" as const), of: fc.nat(3), more: fc.nat(30) }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 }),
        fc.array(step, { maxLength: 20 }),
        (counts, steps) => {
          const { run, may, holding, given } = start(counts);
          holding.ready(run, 0, run.total);
          for (const { kind, of, more } of steps) {
            const each = run.groups[of % run.groups.length]!;
            may.set(each, may.get(each)! + more);
            if (kind === "release") holding.release(run, each);
            else {
              holding.unqueue(run);
              holding.ready(run, 0, run.total);
            }
            expect(new Set(given()).size).toBe(given().length);
            expect(given().length + holding.waiting()).toBe(run.total);
            for (const row of given()) expect(holding.isHeld(run, row)).toBe(false);
          }
          for (const each of run.groups) {
            may.set(each, Infinity);
            holding.release(run, each);
            expect(holding.holds(each)).toBe(false);
          }
          expect(given().toSorted((a, b) => a - b)).toEqual(Array.from({ length: run.total }, (_, row) => row));
        },
      ),
    );
  });

  it("what was with an agent before is never held; what is withdrawn includes what is held", () => {
    const { driver, run, may, holding, given, began } = start([10]);
    const agent = driver.join();
    driver.assign(agent, run.id, 7);
    may.set(run.groups[0]!, 2);
    holding.ready(run, 0, 10);
    expect(given()).toEqual([0, 1, 7]);
    expect(began).toEqual([run.groups[0]]);
    holding.withdraw(() => true);
    expect(given()).toHaveLength(10);
    expect(holding.holds(run.groups[0]!)).toBe(false);
    holding.dropRun(run);
  });

  it("of tasks that wait for their items, only those that are ready count as waiting", () => {
    const driver = createDriver();
    const same = { group: 0, on: "ok", items: "same" } as const;
    const run = driver.submit(spec([group("a", 40), group("b", 40, { after: [same] })]));
    const holding = holdBack(createScheduler(), (_run, each) => (each.index === 0 ? Infinity : 2));
    const agent = driver.join();
    for (const row of [1, 7, 30]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [1, 7, 30], 0);
    for (const row of [41, 47, 70]) holding.ready(run, row, 1);
    expect(holding.waiting()).toBe(3);
    expect([41, 47, 70].map((row) => holding.isHeld(run, row))).toEqual([false, true, true]);
  });
});
