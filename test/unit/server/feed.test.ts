import { describe, expect, it } from "vitest";
import type { EventView } from "../../../src/api/schemas.ts";
import { Ending } from "../../../src/core/events.ts";
import { createFeed } from "../../../src/server/feed.ts";
import { createDriver, group, spec } from "../core/model.ts";

describe("rule 11: back-pressure", () => {
  it("rule 11: a reader of events that is too slow is dropped with a resume point", async () => {
    const feed = createFeed();
    const publish = (count: number): void => {
      for (let i = 0; i < count; i += 1) feed.publish({ event: "test", run: 1 }, 0);
    };
    const stream = feed.follow(undefined, new AbortController().signal);
    const first = stream.next();
    publish(3);
    const seen = [await first, await stream.next(), await stream.next()];
    expect(seen.map(({ value }) => (value as EventView).seq)).toEqual([1, 2, 3]);
    const next = stream.next();
    publish(30_000);
    // the last that it had: whoever continues from there misses nothing that is still remembered
    expect(await next).toEqual({ done: false, value: { resume: 3 } });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    const remembered = feed.since(3, undefined).map(({ seq }) => seq);
    expect([remembered[0], remembered.at(-1), remembered.length]).toEqual([20_004, 30_003, 10_000]);
  });

  it("a reader that keeps up gets every event, in order, and is not dropped", async () => {
    const feed = createFeed();
    const stop = new AbortController();
    const stream = feed.follow(1, stop.signal);
    const got: number[] = [];
    let next = stream.next();
    for (let round = 0; round < 5; round += 1) {
      for (let i = 0; i < 10_000; i += 1) feed.publish({ event: "test", run: i % 2 }, 0);
      for (let i = 0; i < 5000; i += 1) {
        got.push(((await next).value as EventView).seq);
        next = stream.next();
      }
    }
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(got).toEqual(Array.from({ length: 25_000 }, (_, i) => 2 * i + 2));
  });

  it("remembers a bounded past, by run", () => {
    const feed = createFeed();
    for (let i = 1; i <= 25_000; i += 1) feed.publish({ event: "test", run: i % 2 }, 0);
    expect(feed.since(0, undefined)).toHaveLength(10_000);
    expect(feed.since(0, 1).every(({ run }) => run === 1)).toBe(true);
    expect(feed.since(24_999, undefined).map(({ seq }) => seq)).toEqual([25_000]);
  });
});

describe("habit 3", () => {
  it("tells nobody of what is not on disk, and then in order", async () => {
    const feed = createFeed();
    const waiting: (() => void)[] = [];
    feed.whenKept((action) => waiting.push(action));
    const driver = createDriver({ told: { ended: (run, row) => feed.taskEnded(run, row, () => 1000) } });
    const stop = new AbortController();
    const stream = feed.follow(undefined, stop.signal);
    const first = stream.next();
    const run = driver.submit(spec([group("a", 2)]));
    const agent = driver.join();
    driver.assign(agent, run.id, 0);
    driver.assign(agent, run.id, 1);
    driver.end(agent, run.id, [0], 0);
    driver.end(agent, run.id, [1], 3);
    // what is in no journal need not wait
    feed.publish({ event: "clusters.changed" }, 0);
    expect(feed.since(0, undefined).map(({ event }) => event)).toEqual(["clusters.changed"]);
    expect((await first).value).toMatchObject({ seq: 1, event: "clusters.changed" });
    for (const action of waiting) action();
    expect([(await stream.next()).value, (await stream.next()).value]).toMatchObject([
      { seq: 2, task: `${run.id}.0`, detail: { state: "DONE" } },
      { seq: 3, task: `${run.id}.1`, detail: { state: "FAILED" } },
    ]);
    stop.abort();
  });
});

describe("attempts", () => {
  it("those that failed or were lost are events with their reason; the last is told with its task's end", () => {
    const feed = createFeed();
    const driver = createDriver({
      told: {
        attemptOver: (run, row, attempt) => feed.attemptOver(run, row, attempt, () => 1000),
        ended: (run, row) => feed.taskEnded(run, row, () => 1000),
      },
    });
    const run = driver.submit(spec([group("a", 1, { retries: 1 })]));
    const agent = driver.join();
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 3);
    driver.assign(agent, run.id, 0);
    driver.send({ type: "agents.lost", at: 5000, agents: [agent], reason: "the node died" });
    const other = driver.join();
    driver.assign(other, run.id, 0);
    driver.end(other, run.id, [0], -15, Ending.INTERRUPTED);
    driver.assign(other, run.id, 0);
    driver.end(other, run.id, [0], -9);
    driver.send({ type: "run.retried", at: 6000, run: run.id, which: "failed" });
    const task = `${run.id}.0`;
    expect(feed.since(0, run.id)).toMatchObject([
      { event: "attempt.failed", task, detail: { attempt: 1, exitCode: 3, reason: "exit code 3", agent: "1" } },
      { event: "attempt.lost", task, detail: { attempt: 2, exitCode: null, reason: "the node died", agent: "1" } },
      { event: "attempt.lost", task, detail: { attempt: 3, agent: "2" } },
      { event: "task.ended", task, detail: { attempt: 4, state: "FAILED", reason: "killed by SIGKILL" } },
    ]);
    expect(feed.since(0, run.id)).toHaveLength(4);
  });
});
