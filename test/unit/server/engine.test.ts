import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { apply } from "../../../src/core/apply.ts";
import { Ending, type Event } from "../../../src/core/events.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { runState } from "../../../src/core/run.ts";
import { NO_EFFECTS, createState } from "../../../src/core/state.ts";
import { Task } from "../../../src/core/states.ts";
import { touch } from "../../../src/core/table.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createFeed } from "../../../src/server/feed.ts";
import { type Engine, type EngineOptions, createEngine } from "../../../src/server/engine.ts";
import type { JournalIo } from "../../../src/journal/io.ts";
import { type Journal, openJournal } from "../../../src/journal/index.ts";
import { REFUSED_MOVES, refusedMoves } from "../../../src/server/refused-moves.ts";
import { group, spec } from "../core/model.ts";
import { fakeDisk } from "../journal/disk.ts";

const ANYWHERE = { host: "h", version: "1", resources: {}, output: "", seq: 0 };
const OFFER = {
  resources: { cpus: 8 * FRACTION },
  cluster: "local",
  queue: "default",
  pilot: 1,
  endsAt: Infinity,
};

const start = async (
  options: EngineOptions = {},
  io: JournalIo = fakeDisk().io,
): Promise<{ engine: Engine; journal: Journal; commits: number[] }> => {
  const journal = await openJournal({ dir: "/j", epoch: 1, io }, () => undefined);
  const scheduler = createScheduler();
  const engine = createEngine(createState(), scheduler, journal, createClock(), options);
  const commits: number[] = [];
  journal.onDurable((lsn) => commits.push(lsn));
  scheduler.addAgent({ id: 1, ...OFFER });
  engine.rebuildQueues();
  return { engine, journal, commits };
};

const submit = (engine: Engine, run: number): void => {
  engine.commit({ type: "run.opened", at: 1, run, uuid: `u${run}`, spec: spec([group("a", 1)]) });
  engine.commit({ type: "run.committed", at: 1, run });
};

describe("the engine", () => {
  it("assigns a task with the commit that took it in, also right after another one", async () => {
    const { engine, journal, commits } = await start();
    const heard: string[] = [];
    engine.listeners.assigned = (agent, [part]) => heard.push(`agent ${agent}: run ${part!.run}`);
    for (const run of [1, 2, 3]) {
      submit(engine, run);
      expect(heard.length).toBe(run - 1);
      await engine.whenDurable();
      // three records: the run, its end, and its task's assignment
      expect(commits).toEqual(Array.from({ length: run }, (_, nth) => 3 * (nth + 1)));
      expect(heard.at(-1)).toBe(`agent 1: run ${run}`);
    }
    await journal.close();
  });

  it("wired to the feed, a committed run is told of when it is on disk", async () => {
    const { engine, journal } = await start();
    const feed = createFeed();
    feed.whenKept((action) => engine.afterDurable(action));
    engine.listeners.committed = (event) => feed.committed(event);
    submit(engine, 1);
    expect(feed.seq).toBe(0);
    await engine.whenDurable();
    expect(feed.since(0, 1).length).toBeGreaterThan(0);
    await journal.close();
  });

  it("tells nobody of an assignment that is not on disk", async () => {
    const { engine, journal } = await start();
    let durable = 0;
    engine.listeners.assigned = () => (durable = journal.durable);
    submit(engine, 1);
    await engine.whenDurable();
    expect(durable).toBe(3);
    await journal.close();
  });

  it("lets what an assignment needs be prepared while the disk works on it, and not afterwards", async () => {
    const { engine, journal } = await start();
    const heard: string[] = [];
    engine.listeners.assigning = () => heard.push(`assigning, ${journal.durable} of 3 on disk`);
    engine.listeners.assigned = () => heard.push(`assigned, ${journal.durable} of 3 on disk`);
    submit(engine, 1);
    await engine.whenDurable();
    await nextTurn();
    // the fake disk takes no turn of the loop
    expect(heard).toEqual(["assigned, 3 of 3 on disk"]);
    await journal.close();
    const disk = fakeDisk();
    const slow: JournalIo = {
      ...disk.io,
      open: async (path, flags) => {
        const file = await disk.io.open(path, flags);
        const datasync = async (): Promise<void> => {
          for (let turn = 0; turn < 3; turn += 1) await nextTurn();
          return file.datasync();
        };
        return { ...file, datasync };
      },
    };
    const second = await start({}, slow);
    heard.length = 0;
    second.engine.listeners.assigning = () => heard.push(`assigning, ${second.journal.durable} of 3 on disk`);
    second.engine.listeners.assigned = () => heard.push(`assigned, ${second.journal.durable} of 3 on disk`);
    submit(second.engine, 1);
    await second.engine.whenDurable();
    expect(heard).toEqual(["assigning, 0 of 3 on disk", "assigned, 3 of 3 on disk"]);
    await second.journal.close();
  });

  it("queues a task once that comes back between the replay and the filling of the queues", async () => {
    const state = createState();
    const run = {
      run: 1,
      uuid: "u1",
      spec: spec([group("a", 4), group("slow", 1, { retries: 1, retryDelay: 0.001 })]),
    };
    const past: Event[] = [
      { type: "run.opened", at: 1, ...run },
      { type: "run.committed", at: 1, run: 1 },
      { type: "agent.joined", at: 1, agent: 1, uuid: "a1", pilot: 1, ...ANYWHERE },
      { type: "tasks.assigned", at: 1, agent: 1, parts: [{ run: 1, ranges: [0, 5] }] },
    ];
    for (const event of past) apply(state, event, NO_EFFECTS);
    const journal = await openJournal({ dir: "/j", epoch: 2, io: fakeDisk().io }, () => undefined);
    const scheduler = createScheduler();
    const engine = createEngine(state, scheduler, journal, createClock());
    scheduler.addAgent({ id: 1, ...OFFER });
    scheduler.pause(1, true);
    // from a spool: one was cut off and one gets its second try; from an agent's hello: two never arrived
    const results = { ending: Uint8Array.of(Ending.CUT_OFF, Ending.EXIT), code: 1, started: 1, finished: 1 };
    const sizes = { outAt: -1, outBytes: 0, errBytes: 0, details: [] };
    const parts = [{ run: 1, rows: Uint32Array.of(0, 4), attempt: 1, ...results, ...sizes }];
    engine.commit({ type: "tasks.ended", at: 1, agent: 1, seq: 1, parts });
    engine.commit({ type: "tasks.returned", at: 1, agent: 1, parts: [{ run: 1, ranges: [1, 2] }] });
    engine.rebuildQueues();
    const given: number[] = [];
    const all = new Promise<void>((resolve) => {
      engine.listeners.assigned = (_agent, placed) => {
        for (const { ranges } of placed)
          for (let i = 0; i < ranges.length; i += 2)
            for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) given.push(row);
        if (given.includes(4) && given.length >= 4) resolve();
      };
    });
    expect(scheduler.waiting()).toBe(3);
    scheduler.pause(1, false);
    engine.schedulePass();
    await all;
    expect(given.toSorted()).toEqual([0, 1, 2, 4]);
    expect(scheduler.loadOf(1)?.count).toBe(5);
    await journal.close();
  });

  it("gives a task up that is lost once too often, and writes that down", async () => {
    const { engine, journal } = await start({ losses: 0 });
    const heard: Event[] = [];
    engine.listeners.committed = (event) => heard.push(event);
    engine.commit({ type: "agent.joined", at: 1, agent: 1, uuid: "a1", pilot: 1, ...ANYWHERE });
    submit(engine, 1);
    await engine.whenDurable();
    engine.commit({ type: "agents.lost", at: 2, agents: [1], reason: "gone" });
    expect(heard.at(-1)).toMatchObject({ type: "agents.lost", givenUp: [{ run: 1, rows: [0] }] });
    expect(runState(engine.state.runs.get(1)!)).toBe("FAILED");
    await journal.close();
  });

  it("tells of moves that core refused, and goes on", async () => {
    const { engine, journal } = await start();
    const heard: string[] = [];
    engine.listeners.moveRefused = ({ type }) => heard.push(refusedMoves(engine.state, type));
    submit(engine, 1);
    engine.commit({ type: "run.canceled", at: 2, run: 1, reason: "enough" });
    expect(heard).toEqual([]);
    // as a fault might have left it: the run is over, its task is not
    touch(engine.state.runs.get(1)!.table, 0).state[0] = Task.EXECUTING;
    engine.commit({ type: "run.retried", at: 3, run: 1, which: "all" });
    expect(heard).toEqual(["run.retried: 1 move of states refused, the last of run 1, row 0: AGENT_EXECUTING to NEW"]);
    expect(heard[0]).toMatch(REFUSED_MOVES);
    await journal.close();
  });
});
