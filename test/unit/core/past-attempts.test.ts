import { describe, expect, it } from "vitest";
import { encodeEvent } from "../../../src/core/codec.ts";
import { Ending } from "../../../src/core/events.ts";
import { attemptsOf, droppedOf } from "../../../src/core/past-attempts.ts";
import type { Attempt, Run } from "../../../src/core/run.ts";
import { createReplay, encodeState } from "../../../src/core/snapshot.ts";
import { type State, createState } from "../../../src/core/state.ts";
import { touch } from "../../../src/core/table.ts";
import { type Driver, Task, createDriver, group, spec } from "./model.ts";

/** Earlier attempts: which of them are kept, and what is known of each. */

const pages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };
const noArchive = {
  restore: () => {
    throw new Error("nothing is archived here");
  },
};

const throughSnapshot = (state: State): State => {
  const made = createState();
  const replay = createReplay(made, pages, noArchive);
  for (const { type, payload } of encodeState(state, new Map(), pages)) replay(type, payload);
  return made;
};

const replayed = (driver: Driver): State => {
  const made = createState();
  const replay = createReplay(made, pages, noArchive);
  for (const event of driver.events) {
    const { type, payload } = encodeEvent(event);
    replay(type, payload);
  }
  return made;
};

const numbers = (run: Run, row = 0): number[] => attemptsOf(run, row).map(({ n }) => n);

/** One task that fails, is lost or is interrupted this often. */
const failing = (driver: Driver, run: Run, times: number): void => {
  const agent = driver.join();
  for (let i = 0; i < times; i += 1) {
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 1);
  }
};

describe("earlier attempts", () => {
  it("the first three and the last five are kept, and how many were dropped is known", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 1000 })]));
    const agent = driver.join();
    for (let n = 1; n <= 40; n += 1) {
      driver.assign(agent, run.id, 0);
      const kept = n <= 8 ? Array.from({ length: n }, (_, i) => i + 1) : [1, 2, 3, n - 4, n - 3, n - 2, n - 1, n];
      expect(numbers(run)).toEqual(kept);
      expect(droppedOf(run, 0)).toBe(Math.max(0, n - 8));
      driver.end(agent, run.id, [0], 1);
      // while it waits for its next attempt it has had just as many
      expect(numbers(run)).toEqual(kept);
      expect(droppedOf(run, 0)).toBe(Math.max(0, n - 8));
    }
    expect(run.history.get(0)!.length).toBeLessThanOrEqual(8);
  });

  it("retries by policy, losses, interruptions and the verb count alike", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 2 })]));
    failing(driver, run, 2);
    for (let i = 0; i < 3; i += 1) {
      const agent = driver.join();
      driver.assign(agent, run.id, 0);
      driver.send({ type: "agents.lost", at: 5000, agents: [agent], reason: "the node died" });
    }
    const agent = driver.join();
    for (let i = 0; i < 3; i += 1) {
      driver.assign(agent, run.id, 0);
      driver.end(agent, run.id, [0], -15, Ending.INTERRUPTED);
    }
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 1);
    driver.send({ type: "run.retried", at: 6000, run: run.id, which: "failed" });
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 0);
    expect(numbers(run)).toEqual([1, 2, 3, 6, 7, 8, 9, 10]);
    expect(droppedOf(run, 0)).toBe(2);
    expect(attemptsOf(run, 0).map(({ lost }) => lost)).toEqual([false, false, true, true, true, true, false, false]);
    expect(attemptsOf(run, 0).at(-1)).toMatchObject({ n: 10, exit: 0, state: Task.DONE });
  });

  it("each says how it ended, also after a retry by the user", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 3, { retries: 0 })]));
    const agent = driver.join();
    for (const row of [0, 1, 2]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0], 0);
    driver.end(agent, run.id, [1], 3);
    driver.send({ type: "run.canceled", at: 6000, run: run.id, rows: [2], reason: "enough" });
    driver.end(agent, run.id, [2], -15, Ending.CANCELED);
    driver.send({ type: "run.retried", at: 6001, run: run.id, which: "all" });
    const states = [0, 1, 2].map((row) => attemptsOf(run, row)[0]!.state);
    expect(states).toEqual([Task.DONE, Task.FAILED, Task.CANCELED]);
  });

  it("a retry of a task that was cancelled between two attempts adds none", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 5 })]));
    failing(driver, run, 1);
    driver.send({ type: "run.canceled", at: 6000, run: run.id, reason: "enough" });
    driver.send({ type: "run.retried", at: 6001, run: run.id, which: "failed" });
    expect(numbers(run)).toEqual([1]);
    failing(driver, run, 1);
    expect(numbers(run)).toEqual([1, 2]);
    expect(droppedOf(run, 0)).toBe(0);
  });

  it("a snapshot and a replay keep the same ones", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 2, { retries: 1000 })]));
    failing(driver, run, 13);
    const kept = attemptsOf(run, 0);
    for (const state of [throughSnapshot(driver.state), replayed(driver), throughSnapshot(replayed(driver))]) {
      expect(attemptsOf(state.runs.get(run.id)!, 0)).toEqual(kept);
      expect(droppedOf(state.runs.get(run.id)!, 0)).toBe(5);
    }
  });

  it("what an older snapshot holds is shortened when it is read", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1, { retries: 1000 })]));
    failing(driver, run, 1);
    const { state: _, ...old } = run.history.get(0)![0]!;
    run.history = new Map(run.history).set(
      0,
      Array.from({ length: 20 }, (__, i): Attempt => ({ ...old, n: i + 1 })),
    );
    touch(run.table, 0).attempt[0] = 20;
    const read = throughSnapshot(driver.state).runs.get(run.id)!;
    expect(numbers(read)).toEqual([1, 2, 3, 16, 17, 18, 19, 20]);
    expect(droppedOf(read, 0)).toBe(12);
    expect(attemptsOf(read, 0).every(({ state }) => state === undefined)).toBe(true);
  });

  it("the output of ranks goes with the attempt that it belongs to", () => {
    const driver = createDriver();
    const ranks = { count: 4, by: "agents" as const };
    const run = driver.submit(spec([group("a", 1, { retries: 1000, ranks })]));
    const [head, other] = [driver.join(), driver.join()];
    for (let n = 1; n <= 12; n += 1) {
      driver.assign(head, run.id, 0, [other]);
      const rank = { type: "ranks.ended", at: 7000, run: run.id, row: 0, attempt: n, agent: other } as const;
      driver.send({ ...rank, ending: Ending.EXIT, code: 1, detail: "", outAt: 64 * n, outBytes: 5, errBytes: 0 });
      driver.end(head, run.id, [0], 1);
    }
    expect(run.rankOutputs.get(0)!.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 8, 9, 10, 11, 12]);
  });

  it("what a lost attempt had written is known as far as its agent had said", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    const agent = driver.join();
    driver.assign(agent, run.id, 0);
    const started = [{ run: run.id, rows: [0], at: [1500], outAt: [4096] }];
    driver.send({ type: "agents.lost", at: 5000, agents: [agent], reason: "the node died", started });
    expect(attemptsOf(run, 0)).toMatchObject([{ n: 1, lost: true, started: 1500, outAt: 4096 }]);
    expect(attemptsOf(replayed(driver).runs.get(run.id)!, 0)).toMatchObject([{ n: 1, outAt: 4096 }]);
  });

  it("so it is of ranks that are lost with another agent's", () => {
    const driver = createDriver();
    const ranks = { count: 4, by: "agents" as const };
    const run = driver.submit(spec([group("a", 1, { ranks })]));
    const [head, other] = [driver.join(), driver.join()];
    driver.assign(head, run.id, 0, [other]);
    const started = [{ run: run.id, rows: [0], at: [1500], outAt: [128] }];
    driver.send({ type: "agents.lost", at: 5000, agents: [other], reason: "the node died", started });
    expect(attemptsOf(run, 0)).toMatchObject([{ n: 1, lost: true, started: 1500, outAt: 128, agent: head }]);
    expect(run.started).toBe(1500);
  });

  it("an ordinary task has no record of its own", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 5)]));
    const agent = driver.join();
    for (const row of [0, 1, 2, 3, 4]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0, 1, 2, 3, 4], 0);
    expect(run.history.size).toBe(0);
    expect(attemptsOf(run, 3)).toMatchObject([{ n: 1, exit: 0, state: Task.DONE }]);
  });
});
