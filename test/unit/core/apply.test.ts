import { describe, expect, it } from "vitest";
import { Ending } from "../../../src/core/events.ts";
import { runState, shapeOfRow } from "../../../src/core/run.ts";
import { Flag, peek } from "../../../src/core/table.ts";
import { Task, after, countOf, createDriver, group, runToEnd, spec } from "./model.ts";

const reasonOf = (run: ReturnType<ReturnType<typeof createDriver>["submit"]>, row: number): string =>
  run.reasons[peek(run.table, row)!.reason[row % run.table.pageRows]!]!;

describe("dependencies", () => {
  it("releases a group when all tasks of the one it needs are done", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 3), group("b", 2, { after: after(0) })]));
    expect([...driver.ready.get(run.id)!]).toEqual([0, 1, 2]);
    const agent = driver.join();
    for (const row of [0, 1, 2]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0, 1], 0);
    expect(driver.stateOf(run, 3)).toBe(Task.NEW);
    driver.end(agent, run.id, [2], 0);
    expect([...driver.ready.get(run.id)!]).toEqual([3, 4]);
  });

  it("cancels what needed a failed task, with the reason, all the way down", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([group("a", 1), group("b", 2, { after: after(0) }), group("c", 1, { after: after(1) })]),
    );
    runToEnd(driver, () => 3);
    expect(runState(run)).toBe("FAILED");
    expect(countOf(run, Task.FAILED)).toBe(1);
    expect(countOf(run, Task.CANCELED)).toBe(3);
    expect(reasonOf(run, 1)).toBe("a failed");
    expect(reasonOf(run, 3)).toBe("b was cancelled");
  });

  it("runs `any` whatever the outcome, and `failed` only when needed", () => {
    for (const code of [0, 1]) {
      const driver = createDriver();
      const run = driver.submit(
        spec([
          group("a", 2),
          group("always", 1, { after: after([0, "any"]) }),
          group("handler", 1, { after: after([0, "failed"]) }),
        ]),
      );
      runToEnd(driver, (_, row) => (row === 1 ? code : 0));
      expect(driver.stateOf(run, 2)).toBe(Task.DONE);
      expect(driver.stateOf(run, 3)).toBe(code === 0 ? Task.CANCELED : Task.DONE);
      expect(run.unneeded).toBe(code === 0 ? 1 : 0);
      expect(runState(run)).toBe(code === 0 ? "DONE" : "FAILED");
    }
  });

  it("goes on after a handler that was not needed", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([group("a", 1), group("handler", 1, { after: after([0, "failed"]) }), group("end", 1, { after: after(1) })]),
    );
    runToEnd(driver, () => 0);
    expect(driver.stateOf(run, 2)).toBe(Task.DONE);
  });

  it("waits for an earlier run, and is cancelled if that failed", () => {
    for (const code of [0, 1]) {
      const driver = createDriver();
      const first = driver.submit(spec([group("a", 1)]));
      const second = driver.submit(spec([group("b", 1, { after: [{ run: first.id, on: "ok" }] })]));
      expect(driver.ready.get(second.id)).toBeUndefined();
      runToEnd(driver, (run) => (run === first.id ? code : 0));
      expect(runState(second)).toBe(code === 0 ? "DONE" : "CANCELED");
    }
  });

  it("needs no stack for a chain of 100,000 tasks", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec(Array.from({ length: 100_000 }, (_, i) => group(`t${i}`, 1, i === 0 ? {} : { after: after(i - 1) }))),
    );
    const agent = driver.join();
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 1);
    expect(countOf(run, Task.CANCELED)).toBe(99_999);
    expect(runState(run)).toBe("FAILED");
  });
});

describe("two ledgers of failure", () => {
  it("spends retries on a task's own failures only", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 2 })]));
    const agent = driver.join();
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      driver.assign(agent, run.id, 0);
      driver.end(agent, run.id, [0], 1);
    }
    expect(driver.stateOf(run, 0)).toBe(Task.FAILED);
    expect(run.history.get(0)!.map(({ n, exit }) => [n, exit])).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  it("runs a lost task again at no cost to its retries, up to the limit of losses", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    for (let loss = 1; loss <= 6; loss += 1) {
      const agent = driver.join();
      driver.assign(agent, run.id, 0);
      driver.send({ type: "agents.lost", at: 5000 + loss, agents: [agent], reason: "the node died" });
      expect(driver.stateOf(run, 0)).toBe(loss <= 5 ? Task.PENDING : Task.FAILED);
    }
    expect(run.history.get(0)!.every(({ lost }) => lost)).toBe(true);
    expect(reasonOf(run, 0)).toContain("lost 6 times");
  });

  it("a task lost with its spawner counts a loss, runs alone from then on, and is given up when that was too often", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 3 })]));
    const flags = (): number => peek(run.table, 0)!.flags[0]!;
    for (let lost = 1; lost <= 6; lost += 1) {
      const agent = driver.join();
      driver.assign(agent, run.id, 0);
      driver.end(agent, run.id, [0], 0, Ending.SPAWNER_LOST);
      expect(run.losses).toBe(lost);
      expect(flags() & Flag.ALONE).toBe(Flag.ALONE);
      expect(runState(run)).toBe(lost === 6 ? "FAILED" : "RUNNING");
    }
    expect(reasonOf(run, 0)).toContain("lost 6 times");
    expect(run.retries).toBe(0);
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed" });
    expect(flags()).toBe(0);
  });

  it("whoever was in company when their spawner was lost is neither given up for it nor nearer to that", () => {
    const driver = createDriver();
    const victim = driver.submit(spec([group("a", 1)]));
    for (let lost = 1; lost <= 6; lost += 1) {
      const agent = driver.join();
      driver.assign(agent, victim.id, 0);
      if (lost === 1) driver.end(agent, victim.id, [0], 0, Ending.SPAWNER_LOST);
      else driver.send({ type: "agents.lost", at: 8000, agents: [agent], reason: "gone" });
      expect(victim.losses).toBe(lost);
    }
    runToEnd(driver, () => 0);
    expect(runState(victim)).toBe("DONE");

    driver.restart(0);
    const run = driver.submit(spec([group("bad", 1), group("neighbour", 1)]));
    const agent = driver.join();
    for (const row of [0, 1]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0, 1], 0, Ending.SPAWNER_LOST);
    expect([...driver.ready.get(run.id)!]).toEqual([0, 1]);
    for (const row of [0, 1]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0], 0, Ending.SPAWNER_LOST);
    driver.end(agent, run.id, [1], 0);
    expect(driver.stateOf(run, 0)).toBe(Task.FAILED);
    expect(driver.stateOf(run, 1)).toBe(Task.DONE);
  });

  it("charges nothing for an interruption by the agent's own end", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    const agent = driver.join();
    for (let i = 0; i < 20; i += 1) {
      driver.assign(agent, run.id, 0);
      driver.end(agent, run.id, [0], -15, Ending.INTERRUPTED);
    }
    expect(driver.stateOf(run, 0)).toBe(Task.PENDING);
    expect(run.losses).toBe(0);
  });

  it("rule 4: the same results twice, or of a superseded attempt, change nothing", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 1 })]));
    const first = driver.join();
    driver.assign(first, run.id, 0);
    driver.end(first, run.id, [0], 1);
    const late = driver.events.at(-1)!;
    driver.send(late);
    const second = driver.join();
    driver.assign(second, run.id, 0);
    driver.send({ ...late, seq: 99 } as never);
    expect(driver.stateOf(run, 0)).toBe(Task.SCHEDULING);
    driver.end(second, run.id, [0], 0);
    expect(driver.stateOf(run, 0)).toBe(Task.DONE);
  });

  it("rule 5: late results of a lost attempt are discarded", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    const [first, second] = [driver.join(), driver.join()];
    driver.assign(first, run.id, 0);
    driver.send({ type: "agents.lost", at: 5000, agents: [first], reason: "silent" });
    driver.assign(second, run.id, 0);
    driver.end(first, run.id, [0], 1);
    expect(driver.stateOf(run, 0)).toBe(Task.SCHEDULING);
  });
});

describe("cancel and max-fails", () => {
  it("cancels waiting tasks at once and ends running ones through their agent", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 3)]));
    const agent = driver.join();
    driver.assign(agent, run.id, 1);
    driver.send({ type: "run.canceled", at: 9000, run: run.id, reason: "enough" });
    expect(countOf(run, Task.CANCELED)).toBe(2);
    expect(driver.stops).toEqual([{ agent, run: run.id, row: 1 }]);
    driver.end(agent, run.id, [1], -15, Ending.CANCELED);
    expect(runState(run)).toBe("CANCELED");
    expect(reasonOf(run, 1)).toBe("enough");
  });

  it("keeps DONE for a task that was faster than its cancellation", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    const agent = driver.join();
    driver.assign(agent, run.id, 0);
    driver.send({ type: "run.canceled", at: 9000, run: run.id, reason: "enough" });
    driver.end(agent, run.id, [0], 0);
    expect(driver.stateOf(run, 0)).toBe(Task.DONE);
    expect(peek(run.table, 0)!.flags[0]! & Flag.CANCEL).toBe(0);
  });

  it("cancels the rest when more tasks failed than max-fails allows", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 10)], { maxFails: 2 }));
    runToEnd(driver, () => 1);
    expect(countOf(run, Task.FAILED)).toBe(3);
    expect(countOf(run, Task.CANCELED)).toBe(7);
    expect(run.canceled).toContain("max-fails");
  });
});

describe("retry", () => {
  it("rule 6: only retry reopens final tasks, and the old outcome stays visible", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 2), group("b", 1, { after: after(0) })]));
    runToEnd(driver, (_, row) => (row === 1 ? 7 : 0));
    expect(runState(run)).toBe("FAILED");
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed" });
    expect([...driver.ready.get(run.id)!]).toEqual([1]);
    expect(driver.stateOf(run, 2)).toBe(Task.NEW);
    runToEnd(driver, () => 0);
    expect(runState(run)).toBe("DONE");
    expect(run.history.get(1)!.map(({ exit }) => exit)).toEqual([7]);
  });

  it("of single tasks leaves the others as they are, with other amounts for this retry alone", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 4, { retries: 0 }), group("b", 1, { after: after(0) })]));
    runToEnd(driver, (_, row) => (row === 1 || row === 2 ? 7 : 0));
    const set = { resources: { mem: 8 * 2 ** 30 }, retries: 1 };
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed", rows: [1, 1, 4, 1], set });
    // b waits for the whole of a, and one task of it has still failed
    expect([1, 2, 4].map((row) => driver.stateOf(run, row))).toEqual([Task.PENDING, Task.FAILED, Task.CANCELED]);
    expect(shapeOfRow(run.groups[0]!, 1).resources["mem"]).toBe(8 * 2 ** 30);
    expect(shapeOfRow(run.groups[0]!, 2).resources["mem"]).toBeUndefined();
    runToEnd(driver, () => 3);
    expect(run.history.get(1)!.length, "one retry of its own, as was set").toBe(2);
    driver.send({ type: "run.retried", at: 9500, run: run.id, which: "failed" });
    expect(shapeOfRow(run.groups[0]!, 1).resources["mem"], "that was for one retry").toBeUndefined();
    runToEnd(driver, () => 0);
    expect(runState(run)).toBe("DONE");
  });

  it("runs everything again with --all", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([group("a", 2), group("b", 1, { after: after(0) }), group("h", 1, { after: after([0, "failed"]) })]),
    );
    runToEnd(driver, () => 0);
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "all" });
    runToEnd(driver, () => 0);
    expect(runState(run)).toBe("DONE");
    expect(run.unneeded).toBe(1);
    expect(run.history.size).toBe(3);
  });

  it("settles a handler again that is still not needed, and what waits for it goes on", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([
        group("a", 1),
        group("handler", 1, { after: after([0, "failed"]) }),
        group("bad", 1),
        group("end", 1, { after: after(1, 2) }),
      ]),
    );
    runToEnd(driver, (_, row) => (row === 2 ? 1 : 0));
    expect(runState(run)).toBe("FAILED");
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed" });
    expect([...driver.ready.get(run.id)!]).toEqual([2]);
    runToEnd(driver, () => 0);
    expect(runState(run)).toBe("DONE");
    expect(run.unneeded).toBe(1);
    expect(driver.stateOf(run, 3)).toBe(Task.DONE);
  });

  it("of a run whose only open task is such a handler ends at once", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 2), group("handler", 3, { after: after([0, "failed"]) })]));
    runToEnd(driver, () => 0);
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed" });
    expect(runState(run)).toBe("DONE");
    expect(run.unneeded).toBe(3);
  });

  it("waits for another run once, also when it waited for that run before", () => {
    const driver = createDriver();
    const other = driver.submit(spec([group("slow", 1)]));
    const run = driver.submit(
      spec([
        group("a", 1),
        group("b", 1, {
          after: [
            { run: other.id, on: "ok" },
            { group: 0, on: "ok" },
          ],
        }),
      ]),
    );
    const agent = driver.join();
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 1);
    expect(runState(run)).toBe("FAILED");
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed" });
    driver.assign(agent, other.id, 0);
    driver.end(agent, other.id, [0], 0);
    // the other run has ended, but its own dependency has not
    expect(driver.stateOf(run, 1)).toBe(Task.NEW);
    runToEnd(driver, () => 0);
    expect(runState(run)).toBe("DONE");
  });
});

describe("taking back", () => {
  it("rule 9: a prefetched task that is given back keeps its attempt number and never moves backward", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    const [first, second] = [driver.join(), driver.join()];
    driver.assign(first, run.id, 0);
    driver.send({ type: "tasks.returned", at: 9000, agent: first, parts: [{ run: run.id, ranges: [0, 1] }] });
    expect(driver.stateOf(run, 0)).toBe(Task.SCHEDULING);
    expect([...driver.ready.get(run.id)!]).toEqual([0]);
    driver.assign(second, run.id, 0);
    driver.end(second, run.id, [0], 0);
    expect(driver.stateOf(run, 0)).toBe(Task.DONE);
    expect(peek(run.table, 0)!.attempt[0]).toBe(1);
  });
});
