import { describe, expect, it } from "vitest";
import { FRACTION } from "../../../src/core/resources.ts";
import { createState } from "../../../src/core/state.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createClock } from "../../../src/server/clock.ts";
import { type Engine, createEngine } from "../../../src/server/engine.ts";
import { type Journal, openJournal } from "../../../src/server/journal/index.ts";
import { group, spec } from "../core/model.ts";
import { fakeDisk } from "./journal.disk.ts";

const start = async (): Promise<{ engine: Engine; journal: Journal; commits: number[] }> => {
  const journal = await openJournal({ dir: "/j", epoch: 1, io: fakeDisk().io }, () => undefined);
  const scheduler = createScheduler();
  const engine = createEngine(createState(), scheduler, journal, createClock());
  const commits: number[] = [];
  journal.onDurable((lsn) => commits.push(lsn));
  scheduler.addAgent({
    id: 1,
    resources: { cpus: 8 * FRACTION },
    cluster: "local",
    queue: "default",
    pilot: 1,
    endsAt: Infinity,
  });
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

  it("tells nobody of an assignment that is not on disk", async () => {
    const { engine, journal } = await start();
    let durable = 0;
    engine.listeners.assigned = () => (durable = journal.durable);
    submit(engine, 1);
    await engine.whenDurable();
    expect(durable).toBe(3);
    await journal.close();
  });
});
