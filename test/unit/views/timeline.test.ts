import { describe, expect, it } from "vitest";
import { TimelineView } from "../../../src/api/timeline.ts";
import { createLanes, updateLanes } from "../../../src/core/lanes.ts";
import type { Run } from "../../../src/core/run.ts";
import { timelineOf, timelineText } from "../../../src/views/timeline.ts";
import { createDriver, group, spec } from "../core/model.ts";

const finish = <T>(work: Generator<undefined, T>): T => {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
};

const view = (run: Run, lanes: ReturnType<typeof createLanes>, query = {}, now = 1_000_000): TimelineView => {
  finish(updateLanes(run, lanes, (agent) => `node${agent}`));
  const found = finish(timelineOf(run, lanes, { from: undefined, to: undefined, most: 100_000, ...query }, now));
  return TimelineView.parse(JSON.parse([...timelineText(found)].join("")));
};

/** Sets when the latest attempt of a row ran. */
const ran = (run: Run, row: number, started: number, finished: number): void => {
  const page = run.table.pages[Math.floor(row / run.table.pageRows)]!;
  page.started[row % run.table.pageRows] = started;
  page.finished[row % run.table.pageRows] = finished;
  if (run.started === 0 || started < run.started) run.started = started;
};

const setUp = (tasks: number, agents: number) => {
  const driver = createDriver();
  const run = driver.submit(spec([group("a", tasks, { retries: 1 })]));
  const ids = Array.from({ length: agents }, () => driver.join());
  return { driver, run, ids };
};

/** No two bars of a lane overlap. */
const checkLanes = ({ lane, start, end }: TimelineView): void => {
  const until = new Map<number, number>();
  for (const i of [...lane.keys()].toSorted((a, b) => start[a]! - start[b]!)) {
    expect(start[i]!, `bar ${i}`).toBeGreaterThanOrEqual(until.get(lane[i]!) ?? 0);
    until.set(lane[i]!, end[i] === -1 ? Infinity : end[i]!);
  }
};

describe("a timeline", () => {
  it("has a lane for each task that ran at once on a host, and none twice at a time", () => {
    const { driver, run, ids } = setUp(200, 2);
    for (let row = 0; row < 200; row += 1) {
      const agent = ids[row % 2]!;
      driver.assign(agent, run.id, row);
      if (row < 192) driver.end(agent, run.id, [row], 0);
      // 4 at a time on each host
      const start = 10_000 + Math.floor(row / 8) * 100 + (row % 8);
      ran(run, row, start, row < 192 ? start + 90 : 0);
    }
    run.started = 10_000;
    const found = view(run, createLanes(run.total));
    expect([found.bars, found.folded, found.lane.length]).toEqual([200, false, 200]);
    expect(found.lanes.map(({ host, slot }) => `${host} ${slot}`)).toEqual(
      ids.flatMap((id) => [0, 1, 2, 3].map((slot) => `node${id} ${slot}`)),
    );
    checkLanes(found);
    expect(found.end.filter((end) => end === -1)).toHaveLength(8);
    expect(found.states[found.state[0]!]).toBe("DONE");
    expect(found.began).toBe(new Date(10_000).toISOString());
  });

  it("what was drawn stays where it is while the run goes on, and tries before the last are there", () => {
    const { driver, run, ids } = setUp(4, 1);
    const [agent] = ids as [number];
    const lanes = createLanes(run.total);
    for (const row of [0, 1]) {
      driver.assign(agent, run.id, row);
      ran(run, row, 1000 + row, 0);
    }
    const before = view(run, lanes);
    expect(before.lane).toEqual([0, 1]);
    // the first fails and runs again; another takes a place that became free
    run.table.pages[0]!.finished[0] = 1500;
    driver.end(agent, run.id, [0], 3);
    const past = run.history.get(0)![0]! as { started: number; finished: number };
    [past.started, past.finished] = [1000, 1500];
    driver.assign(agent, run.id, 0);
    ran(run, 0, 1600, 0);
    driver.assign(agent, run.id, 2);
    ran(run, 2, 1550, 1590);
    const after = view(run, lanes);
    checkLanes(after);
    const laneOf = (task: number, attempt: number): number =>
      after.lane[after.task.findIndex((each, i) => each === task && after.attempt[i] === attempt)]!;
    expect([laneOf(0, 1), laneOf(1, 1)]).toEqual([0, 1]);
    expect([laneOf(2, 1), laneOf(0, 2)]).toEqual([0, 0]);
    expect(after.states[after.state[after.task.findIndex((_, i) => after.end[i] === 500)]!]).toBe("FAILED");
    expect(view(run, lanes)).toEqual(after);
  });

  it("of many bars in a range neighbours are one, with counts; the answer stays small", () => {
    const { driver, run, ids } = setUp(5000, 3);
    for (let row = 0; row < 5000; row += 1) {
      const agent = ids[row % 3]!;
      driver.assign(agent, run.id, row);
      driver.end(agent, run.id, [row], 0);
      ran(run, row, 1000 + row, 1000 + row + 3);
    }
    const lanes = createLanes(run.total);
    const found = view(run, lanes, { most: 100 });
    expect([found.folded, found.bars]).toEqual([true, 5000]);
    expect(found.lane.length).toBeLessThanOrEqual(100);
    expect(found.count!.reduce((sum, each) => sum + each, 0)).toBe(5000);
    const part = view(run, lanes, { from: 1000, to: 1100 });
    expect(part.folded).toBe(false);
    expect(part.task.every((task) => task >= 997 && task <= 1100)).toBe(true);
    expect(part.task).toHaveLength(104);
    // a range beyond the end is empty but for what touches it
    expect(view(run, lanes, { from: 10 ** 12, to: 0 }).bars).toBeLessThan(10);
  });

  it("more lanes than bars are drawn together, and a run that has not begun has none", () => {
    const { driver, run, ids } = setUp(300, 300);
    expect(view(run, createLanes(run.total))).toMatchObject({ began: null, bars: 0, lanes: [], until: 0 });
    for (const [row, agent] of ids.entries()) {
      driver.assign(agent, run.id, row);
      ran(run, row, 1000, 0);
    }
    const found = view(run, createLanes(run.total), { most: 100 });
    expect(found.lanes).toHaveLength(100);
    expect(found.lanes.reduce((sum, { of }) => sum + of, 0)).toBe(300);
    expect(found.count!.every((each) => each === 3)).toBe(true);
  });
});
