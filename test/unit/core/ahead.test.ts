import { describe, expect, it } from "vitest";
import { followerOf, oneBefore } from "../../../src/core/ahead.ts";
import { Ending } from "../../../src/core/events.ts";
import { attemptsOf } from "../../../src/core/past-attempts.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Run, shapeOfRow } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { peek } from "../../../src/core/table.ts";
import { type Driver, Task, after, createDriver, group, spec } from "./model.ts";

/** Tasks handed ahead, one case at a time; histories.test.ts draws the rest. */

const chain = (length: number, more: Partial<GroupSpec> = {}): GroupSpec[] =>
  Array.from({ length }, (_, i) => group(`t${i}`, 1, { ...more, after: i === 0 ? [] : after(i - 1) }));

/** Row 0 is at an agent, and all others lie behind it. */
const start = (length: number, more: Partial<GroupSpec> = {}): { driver: Driver; run: Run; agent: number } => {
  const driver = createDriver();
  const run = driver.submit(spec(chain(length, more)));
  const agent = driver.join();
  driver.assign(agent, run.id, 0);
  for (let row = 1; row < length; row += 1) driver.ahead(agent, run.id, row);
  return { driver, run, agent };
};
const statesOf = ({ driver, run }: { driver: Driver; run: Run }): number[] =>
  run.groups.map(({ first }) => driver.stateOf(run, first));
const giveBack = (driver: Driver, agent: number, run: Run, from: number, count: number): void =>
  driver.send({ type: "tasks.returned", at: 9000, agent, parts: [{ run: run.id, ranges: [from, count] }] });

describe("a task that was handed ahead", () => {
  it("is NEW until what it waits for is done, and then with its agent; it is never queued", () => {
    const world = start(3);
    const { driver, run, agent } = world;
    expect(statesOf(world)).toEqual([Task.SCHEDULING, Task.NEW, Task.NEW]);
    expect(oneBefore(run, run.groups[2]!, 2)).toBe(1);
    expect(followerOf(run, run.groups[1]!, 1, agent)).toBe(2);
    driver.end(agent, run.id, [0], 0);
    expect(statesOf(world)).toEqual([Task.DONE, Task.SCHEDULING, Task.NEW]);
    expect(driver.ready.get(run.id)?.size).toBe(0);
    driver.end(agent, run.id, [1, 2], 0);
    expect([statesOf(world), run.finished > 0]).toEqual([[Task.DONE, Task.DONE, Task.DONE], true]);
    expect(attemptsOf(run, 2)).toMatchObject([{ n: 1, agent }]);
  });

  it("has no result before the one it waits for, whatever an agent says", () => {
    const world = start(3);
    const { driver, run, agent } = world;
    driver.end(agent, run.id, [1], 0);
    driver.end(agent, run.id, [2, 0], 0);
    expect(statesOf(world)).toEqual([Task.DONE, Task.SCHEDULING, Task.NEW]);
  });

  it("waits again when it is given back, and is ready when that one is done, with the same attempt", () => {
    const world = start(3, { retries: 1 });
    const { driver, run, agent } = world;
    driver.end(agent, run.id, [0], 1);
    giveBack(driver, agent, run, 1, 2);
    expect(statesOf(world)).toEqual([Task.PENDING, Task.NEW, Task.NEW]);
    driver.assign(agent, run.id, 0);
    driver.end(agent, run.id, [0], 0);
    expect([...driver.ready.get(run.id)!]).toEqual([1]);
    driver.assign(agent, run.id, 1);
    expect(attemptsOf(run, 1)).toMatchObject([{ n: 1 }]);
  });

  it("stays with its agent, which alone can give it back, though what it waits for has ended well elsewhere", () => {
    const world = start(2, { retries: 1 });
    const { driver, run, agent } = world;
    const other = driver.join();
    driver.end(agent, run.id, [0], 1);
    driver.assign(other, run.id, 0);
    driver.end(other, run.id, [0], 0);
    expect([statesOf(world), driver.ready.get(run.id)!.size]).toEqual([[Task.DONE, Task.SCHEDULING], 0]);
    giveBack(driver, agent, run, 1, 1);
    expect([...driver.ready.get(run.id)!]).toEqual([1]);
  });

  it("is cancelled with the agent's word, also because what it waits for failed", () => {
    const world = start(4);
    const { driver, run, agent } = world;
    driver.send({ type: "run.canceled", at: 9000, run: run.id, rows: [3], reason: "test" });
    expect([statesOf(world)[3], driver.stops]).toEqual([Task.NEW, [{ agent, run: run.id, row: 3 }]]);
    giveBack(driver, agent, run, 3, 1);
    driver.end(agent, run.id, [0], 1);
    expect([statesOf(world), run.finished]).toEqual([[Task.FAILED, Task.NEW, Task.NEW, Task.CANCELED], 0]);
    giveBack(driver, agent, run, 1, 2);
    expect(statesOf(world)).toEqual([Task.FAILED, Task.CANCELED, Task.CANCELED, Task.CANCELED]);
    expect(run.finished).toBeGreaterThan(0);
  });

  it("rule 5: is lost with what it waits for: both attempts count, that one runs again, and it waits for it", () => {
    const world = start(3);
    const { driver, run, agent } = world;
    driver.end(agent, run.id, [0], 0);
    driver.send({ type: "agents.lost", at: 9000, agents: [agent], reason: "gone" });
    expect([statesOf(world), [...driver.ready.get(run.id)!]]).toEqual([[Task.DONE, Task.PENDING, Task.NEW], [1]]);
    for (const row of [1, 2]) expect(attemptsOf(run, row)).toMatchObject([{ n: 1, lost: true }]);
    expect(run.losses).toBe(2);
    const next = driver.join();
    driver.assign(next, run.id, 1);
    driver.end(next, run.id, [1], 0);
    driver.assign(next, run.id, 2);
    expect(attemptsOf(run, 2)).toMatchObject([{ n: 1, lost: true }, { n: 2 }]);
  });

  it("is given up with what it waits for where no loss is allowed", () => {
    const world = start(2);
    world.driver.restart(0);
    world.driver.send({ type: "agents.lost", at: 9000, agents: [world.agent], reason: "gone" });
    expect([statesOf(world), world.run.finished > 0]).toEqual([[Task.FAILED, Task.FAILED], true]);
  });

  it("keeps the amounts that it was handed ahead with, and gets new ones when it comes back", () => {
    const { driver, run, agent } = start(2, { auto: { mem: true }, resources: { cpus: FRACTION, mem: 4 } });
    const asks = (): number | undefined => shapeOfRow(run.groups[1]!, 1).resources["mem"];
    const learn = (mem: number): void => driver.send({ type: "run.requests", at: 9000, run: run.id, group: 1, mem });
    learn(9);
    expect(asks()).toBe(4);
    giveBack(driver, agent, run, 1, 1);
    expect(asks()).toBe(9);
    driver.ahead(agent, run.id, 1);
    learn(6);
    expect(asks()).toBe(9);
  });

  it("gets more memory when it is killed for it, in the very message that says it may begin", () => {
    const { driver, run, agent } = start(2, { memRetry: 2, resources: { cpus: FRACTION, mem: 4 } });
    driver.end(agent, run.id, [0, 1], -9, Ending.MEMORY, 1);
    expect(peek(run.table, 1)!.fails[1]).toBe(0);
    expect(run.groups[1]!.memory.get(1)).toMatchObject({ kills: 1 });
  });
});
