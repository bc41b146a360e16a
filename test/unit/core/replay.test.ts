import { describe, expect, it } from "vitest";
import { encodeEvent, packr } from "../../../src/core/codec.ts";
import { compareStates } from "../../../src/core/compare.ts";
import { Ending, type Event } from "../../../src/core/events.ts";
import { type Run, runState } from "../../../src/core/run.ts";
import type { StateRecord } from "../../../src/core/snapshot.ts";
import type { Condition } from "../../../src/core/spec.ts";
import type { State } from "../../../src/core/state.ts";
import { type Driver, Task, createDriver, group, spec } from "./model.ts";
import { replayAll, same, snapshotOf } from "./replays.ts";

const waiting = (...runs: (number | [number, Condition])[]) =>
  spec([
    group("g", 1, {
      after: runs.map((each) => ({ run: [each].flat()[0] as number, on: ([each].flat()[1] as Condition) ?? "ok" })),
    }),
  ]);

const one = () => spec([group("g", 1)]);

const finish = (driver: Driver, agent: number, run: Run, code = 0): void => {
  driver.assign(agent, run.id, 0);
  driver.end(agent, run.id, [0], code);
};

/** The state after a snapshot at event `at` and the events behind it. */
const through = (events: readonly Event[], at: number, losses: number, change = (all: StateRecord[]) => all): State => {
  const all = events.map((event) => encodeEvent(event));
  return replayAll([...change(snapshotOf(replayAll(all.slice(0, at), losses))), ...all.slice(at)], losses);
};

/** A snapshot as Slipway of format 1 wrote it. */
const withoutLinks = (records: StateRecord[]): StateRecord[] =>
  records.map((each) => {
    if (each.type !== 100) return each;
    const { links: _links, ...rest } = packr.unpack(each.payload) as Record<string, unknown>;
    return { type: 100, payload: packr.pack(rest) };
  });

describe("links between runs", () => {
  it.each([
    ["", (all: StateRecord[]) => all],
    [", also one of format 1", withoutLinks],
  ])("exist for the events behind a snapshot%s: what waited for a run goes on when it ends", (_name, change) => {
    const driver = createDriver();
    const agent = driver.join();
    const a = driver.submit(one());
    const b = driver.submit(waiting(a.id));
    const alarm = driver.submit(waiting([a.id, "failed"]));
    const at = driver.events.length;
    finish(driver, agent, a);
    finish(driver, agent, b);
    expect([a, b, alarm].map(runState)).toEqual(["DONE", "DONE", "DONE"]);
    same(through(driver.events, at, 5, change), driver.state);
  });

  it("are made from a snapshot of format 1 that nothing follows", () => {
    const driver = createDriver();
    const a = driver.submit(one());
    driver.submit(waiting(a.id));
    same(through(driver.events, driver.events.length, 5, withoutLinks), driver.state);
  });

  it("are settled once: a run that has ended, is retried and ends again does not stand for another one", () => {
    const driver = createDriver();
    const agent = driver.join();
    const [a, c] = [driver.submit(one()), driver.submit(one())];
    const b = driver.submit(waiting(a.id, c.id));
    finish(driver, agent, a);
    driver.send({ type: "run.retried", at: 7000, run: a.id, which: "all" });
    const at = driver.events.length;
    finish(driver, agent, a);
    expect(driver.stateOf(b, 0)).toBe(Task.NEW);
    same(through(driver.events, at, 5), driver.state);
  });

  it("are not counted twice when the one that waits was cancelled and retried", () => {
    const driver = createDriver();
    const agent = driver.join();
    const [a, c] = [driver.submit(one()), driver.submit(one())];
    const b = driver.submit(waiting(a.id, c.id));
    driver.send({ type: "run.canceled", at: 7000, run: b.id, reason: "test" });
    driver.send({ type: "run.retried", at: 7001, run: b.id, which: "failed" });
    finish(driver, agent, a);
    expect(driver.stateOf(b, 0)).toBe(Task.NEW);
    finish(driver, agent, c);
    expect(driver.stateOf(b, 0)).toBe(Task.PENDING);
  });
});

describe("what was decided", () => {
  const lose = (driver: Driver, run: Run, times: number): void => {
    for (let n = 0; n < times; n += 1) {
      const agent = driver.join();
      driver.assign(agent, run.id, 0);
      if (n % 2 === 0) driver.send({ type: "agents.lost", at: 7000, agents: [agent], reason: "gone" });
      else driver.end(agent, run.id, [0], 0, Ending.CUT_OFF);
    }
  };

  it("stays: a task that was lost often and is done stays done under a lower limit, through snapshots too", () => {
    const driver = createDriver();
    driver.restart(50);
    const run = driver.submit(one());
    lose(driver, run, 7);
    const at = driver.events.length;
    finish(driver, driver.join(), run);
    expect(runState(run)).toBe("DONE");
    for (const cut of [0, at, driver.events.length])
      for (const losses of [0, 5, 50]) same(through(driver.events, cut, losses), driver.state);
  });

  it("stays: a task that was given up stays so under a higher limit", () => {
    const driver = createDriver();
    driver.restart(1);
    const run = driver.submit(one());
    const alarm = driver.submit(waiting([run.id, "failed"]));
    lose(driver, run, 2);
    expect(runState(run)).toBe("FAILED");
    expect(driver.stateOf(alarm, 0)).toBe(Task.PENDING);
    for (const cut of [0, driver.events.length]) same(through(driver.events, cut, 50), driver.state);
  });

  it("what format 1 did not write down is judged once, by the limit of the first start that finds it", () => {
    const driver = createDriver({ format1: 50 });
    const run = driver.submit(one());
    lose(driver, run, 7);
    finish(driver, driver.join(), run);
    const first = replayAll(
      driver.events.map((event) => encodeEvent(event)),
      50,
    );
    expect(first.undecided).toBe(7);
    same(first, driver.state);
    driver.restart(3);
    expect(driver.events.at(-1)).toMatchObject({ type: "losses.judged", limit: 50 });
    const later = replayAll(
      driver.events.map((event) => encodeEvent(event)),
      3,
    );
    expect(later.undecided).toBe(0);
    same(later, driver.state);
  });

  it("a task that is lost 256 times is given up, however high the limit", () => {
    const driver = createDriver();
    driver.restart(1_000_000);
    const run = driver.submit(one());
    lose(driver, run, 255);
    expect(driver.stateOf(run, 0)).toBe(Task.PENDING);
    lose(driver, run, 1);
    expect(driver.stateOf(run, 0)).toBe(Task.FAILED);
    expect(run.reasons.at(-1)).toMatch(/^lost 256 times/);
  });
});

describe("a run in the archive", () => {
  it("takes what a late rank says, as it does in memory", () => {
    const driver = createDriver();
    const [head, other] = [driver.join(), driver.join()];
    const run = driver.submit(spec([group("g", 1, { ranks: { count: 4, by: "agents" } })]));
    driver.assign(head, run.id, 0, [other]);
    driver.end(head, run.id, [0], 1);
    expect(runState(run)).toBe("FAILED");
    const at = driver.events.length;
    const facts = { ending: Ending.EXIT, code: 0, detail: "", outAt: 64, outBytes: 5, errBytes: 0 };
    driver.send({ type: "ranks.ended", at: 7000, run: run.id, row: 0, attempt: 1, agent: other, ...facts });
    expect(run.rankOutputs.size).toBe(1);
    same(through(driver.events, at, 5), driver.state);
  });
});

describe("the comparison of states", () => {
  it("names what differs, first things first, and no more than asked for", () => {
    const [a, b] = [createDriver(), createDriver()];
    for (const driver of [a, b]) driver.submit(spec([group("g", 30)]));
    const agent = a.join();
    for (let row = 0; row < 30; row += 1) a.assign(agent, 1, row);
    const restore = (): never => {
      throw new Error("nothing is archived here");
    };
    const side = (driver: Driver) => ({ state: driver.state, restore });
    const found = compareStates(side(a), side(b), 5);
    expect(found.map(({ what }) => what)).toEqual([
      "nextAgent",
      "agent 1",
      "agent with the uuid a1",
      "run 1: counts",
      "run 1, row 0: state",
    ]);
    expect(found[4]!.values).toEqual(['"TMGR_SCHEDULING"', '"TMGR_SCHEDULING_PENDING"']);
    expect(compareStates(side(a), side(a))).toEqual([]);
  });
});
