import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeEvent } from "../../../src/core/codec.ts";
import { Ending } from "../../../src/core/events.ts";
import { nextMemory } from "../../../src/core/memory-retry.ts";
import { attemptsOf } from "../../../src/core/past-attempts.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Run, groupOf, shapeOfRow } from "../../../src/core/run.ts";
import { peek } from "../../../src/core/table.ts";
import { type Driver, Task, countOf, createDriver, group, spec } from "./model.ts";
import { replayAll, same, snapshotOf } from "./replays.ts";

describe("what a task gets after it was killed for memory", () => {
  it("is twice as much, and at the last of several tries the largest there is", () => {
    expect(nextMemory(2, 0, 1, 64)).toBe(4);
    expect([nextMemory(2, 0, 2, 64), nextMemory(4, 1, 2, 64)]).toEqual([4, 64]);
    expect([nextMemory(2, 0, 3, 64), nextMemory(4, 1, 3, 64), nextMemory(8, 2, 3, 64)]).toEqual([4, 8, 64]);
    expect(nextMemory(40, 0, 3, 64)).toBe(64);
    expect(nextMemory(64, 1, 3, 64)).toBeUndefined();
    expect(nextMemory(2, 1, 1, 64)).toBeUndefined();
  });

  it("always grows, and never beyond what there is; the tries come to an end", () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.nat(20), fc.nat(1e6), (first, tries, largest) => {
        let now = first;
        for (let kills = 0; ; kills += 1) {
          const next = nextMemory(now, kills, tries, largest);
          if (next === undefined) return kills <= tries;
          expect(next).toBeGreaterThan(now);
          expect(next).toBeLessThanOrEqual(largest);
          now = next;
        }
      }),
    );
  });
});

describe("mem-retry", () => {
  const sized = (more: object = {}) => spec([group("a", 3, { resources: { cpus: FRACTION, mem: 4 }, ...more })]);
  const begin = (
    more: object = {},
  ): { driver: Driver; run: Run; agent: number; kill: () => void; mem: () => number } => {
    const driver = createDriver();
    const run = driver.submit(sized(more));
    const agent = driver.join();
    return {
      driver,
      run,
      agent,
      kill: () => {
        driver.assign(agent, run.id, 1);
        driver.end(agent, run.id, [1], -9, Ending.MEMORY);
      },
      mem: () => shapeOfRow(run.groups[0]!, 1).resources["mem"]!,
    };
  };

  it("tries again with more, in a ledger of its own: no retry is spent, and every attempt keeps its amount", () => {
    const { driver, run, agent, kill, mem } = begin({ memRetry: 2, retries: 1 });
    kill();
    expect(mem()).toBe(8);
    kill();
    // the driver's nodes have 50
    expect(mem()).toBe(50);
    expect([run.retries, peek(run.table, 1)!.fails[1]]).toEqual([0, 0]);
    // the ledger is used up: from here on it is a failure like any other, and keeps what it has
    kill();
    expect([run.retries, peek(run.table, 1)!.fails[1], mem()]).toEqual([1, 1, 50]);
    driver.assign(agent, run.id, 1);
    driver.end(agent, run.id, [1], 0);
    expect(attemptsOf(run, 1).map((attempt) => attempt.mem)).toEqual([4, 8, 50, 50]);
    expect(attemptsOf(run, 1).map(({ reason }) => reason)).toEqual([
      "killed for memory at 4B; tried again with 8B",
      "killed for memory at 8B; tried again with 50B",
      "over its memory limit",
      "",
    ]);
    expect(countOf(run, Task.DONE)).toBe(1);
    // its neighbours ask for what they always did
    expect(shapeOfRow(run.groups[0]!, 0).resources["mem"]).toBe(4);
  });

  it("what was decided is history: another limit, a snapshot or a replay changes no amount", () => {
    const { driver, run, kill, mem } = begin({ memRetry: 3 });
    kill();
    driver.restart(1);
    kill();
    // the nodes of this server have 10 only
    expect(mem()).toBe(10);
    driver.restart(6);
    kill();
    expect(mem()).toBe(60);
    const records = driver.events.map((event) => encodeEvent(event));
    const replayed = replayAll(records, 2);
    same(replayed, driver.state);
    const restored = replayAll(snapshotOf(driver.state), 2);
    same(restored, driver.state);
    for (const state of [replayed, restored]) {
      const again = state.runs.get(run.id)!;
      expect(shapeOfRow(groupOf(again.groups, 1), 1).resources["mem"]).toBe(60);
      expect(again.groups[0]!.memory.get(1)).toEqual({ kills: 3, mem: 60 });
    }
  });

  it("a cancelled task, one without the key, and one that has the largest are not tried again", () => {
    const without = begin();
    without.kill();
    expect(countOf(without.run, Task.FAILED)).toBe(1);

    const largest = begin({ memRetry: 2, resources: { cpus: FRACTION, mem: 50 } });
    largest.kill();
    expect(countOf(largest.run, Task.FAILED)).toBe(1);

    const { driver, run, agent } = begin({ memRetry: 2 });
    driver.assign(agent, run.id, 1);
    driver.send({ type: "run.canceled", at: 1, run: run.id, reason: "test" });
    driver.end(agent, run.id, [1], -9, Ending.MEMORY);
    expect(countOf(run, Task.CANCELED)).toBe(3);
    expect(run.groups[0]!.memory.size).toBe(0);
  });

  it("`slipway retry` begins with the first amount and a full ledger again", () => {
    const { driver, run, agent, kill, mem } = begin({ memRetry: 1 });
    kill();
    kill();
    for (const row of [0, 2]) {
      driver.assign(agent, run.id, row);
      driver.end(agent, run.id, [row], 0);
    }
    driver.send({ type: "run.retried", at: 1, run: run.id, which: "failed" });
    expect(mem()).toBe(4);
    kill();
    expect(mem()).toBe(8);
  });

  it("a formula for another amount and the grown memory hold together", () => {
    const { driver, run, agent, kill } = begin({
      memRetry: 1,
      retries: 1,
      attemptResources: { cpus: "{attempt * 2}" },
    });
    kill();
    driver.assign(agent, run.id, 1);
    driver.end(agent, run.id, [1], 1);
    expect(shapeOfRow(run.groups[0]!, 1).resources).toEqual({ cpus: 4 * FRACTION, mem: 8 });
  });
});
