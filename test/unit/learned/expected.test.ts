import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ending } from "../../../src/core/events.ts";
import { peakPages, raisePeak } from "../../../src/core/peak.ts";
import type { Group, Run } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { Task } from "../../../src/core/states.ts";
import { stateOf, touch } from "../../../src/core/table.ts";
import { encodeLearned } from "../../../src/learned/codec.ts";
import { type Expected, createExpected } from "../../../src/learned/expected.ts";
import { type Learned, createLearned } from "../../../src/learned/learned.ts";
import { type Driver, after, createDriver, group, spec } from "../core/model.ts";

const UNKNOWN = 60_000;

interface World {
  readonly driver: Driver;
  readonly expected: Expected;
  readonly learned: Learned;
  submit(...groups: GroupSpec[]): Run;
  /** Runs a task, which takes so many milliseconds. */
  end(run: Run, row: number, ms: number, code?: number, ending?: number, peak?: number): void;
}

const createWorld = (learned = createLearned()): World => {
  const expected = createExpected(learned, { defaultCluster: "local", unknownMs: () => UNKNOWN });
  let took = 0;
  let seen: number | undefined;
  const driver = createDriver({
    told: {
      ended: (run, row) => {
        const page = touch(run.table, row);
        page.finished[row % run.table.pageRows] = page.started[row % run.table.pageRows]! + took;
        if (seen !== undefined) raisePeak(run, row, peakPages(seen), 1);
        expected.taskEnded(run, row);
      },
    },
  });
  const agent = driver.join();
  return {
    driver,
    expected,
    learned,
    submit: (...groups) => {
      const run = driver.submit(spec(groups));
      expected.begin(run);
      return run;
    },
    end: (run, row, ms, code = 0, ending = code < 0 ? Ending.SIGNAL : Ending.EXIT, peak = undefined) => {
      took = ms;
      seen = peak;
      driver.assign(agent, run.id, row);
      driver.end(agent, run.id, [row], code, ending);
    },
  };
};

const first = (run: Run): Group => run.groups[0]!;

const things = fc.array(
  fc.record({
    do: fc.constantFrom("end", "end", "end", "end", "teach", "ask", "submit", "forget"),
    run: fc.nat(2),
    row: fc.nat(20),
    ms: fc.constantFrom(1, 10, 11, 1000),
  }),
  { maxLength: 60 },
);

describe("what is expected", () => {
  it("is the same whether ends teach at once or later: when asked for, and when all have taught", () => {
    fc.assert(
      fc.property(things, (drawn) => {
        const [now, later] = [createWorld(), createWorld()];
        const waiting: (() => void)[] = [];
        later.expected.later = (work) => void waiting.push(work);
        const worlds = [now, later].map((world) => ({
          ...world,
          runs: [0, 1, 2].map(() => world.submit(group("a", 1), group("b", 4), group("c", 3, { after: after(0) }))),
        }));
        const alike = <T>(of: (world: (typeof worlds)[number]) => T): void =>
          expect(of(worlds[1]!)).toEqual(of(worlds[0]!));
        for (const { do: what, run: nth, row, ms } of drawn) {
          if (what === "teach") for (const work of waiting.splice(0)) work();
          for (const { runs, end, submit, expected } of worlds) {
            const run = runs[nth]!;
            if (what === "end" && run.finished === 0 && stateOf(run.table, row % run.total) === Task.PENDING)
              end(run, row % run.total, ms);
            if (what === "submit") runs[nth] = submit(group("a", 1), group("b", 4));
            if (what === "forget" && run.finished > 0) expected.forget(run);
          }
          if (what !== "ask") continue;
          alike(({ expected, runs }) => expected.ofTask(runs[nth]!, row % runs[nth]!.total));
          alike(({ expected, runs }) => expected.basisOf(runs[nth]!, row % runs[nth]!.total));
          alike(({ expected, runs }) => expected.ownTimes(runs[nth]!, runs[nth]!.groups[1]!, [1, 2, 3]));
        }
        for (const work of waiting.splice(0)) work();
        alike(({ learned }) => encodeLearned(learned, 0));
        alike(({ runs }) => runs.map(({ groups, meanMs }) => [meanMs, ...groups.map(({ expectedMs }) => expectedMs)]));
        expect(waiting).toEqual([]);
      }),
    );
  });

  it("of a large graph that has ended is looked up group by group without beginning anew for each", () => {
    const { expected, driver } = createWorld();
    const run = driver.submit(spec(Array.from({ length: 10_000 }, (_, i) => group(`g${i}`, 1))));
    const known = run.groups.map((of) => expected.templateKey(run, of));
    driver.send({ type: "run.canceled", at: 1e6, run: run.id, reason: "x" });
    expected.forget(run);
    expect(run.finished).toBeGreaterThan(0);
    expect(run.groups.map((of) => expected.templateKey(run, of))).toEqual(known);
  });

  it("row 001-10: a task's own last success first, also in another run", () => {
    const { expected, submit, end } = createWorld();
    const run = submit(group("fit", 3, { command: "fit {item}" }));
    for (const [row, ms] of [100, 2000, 30_000].entries()) end(run, row, ms);
    const again = submit(group("fit", 3, { command: "fit {item}" }));
    expect([0, 1, 2].map((row) => Math.round(expected.ofTask(again, row)))).toEqual([100, 2000, 30_000]);
    expect(expected.basisOf(again, 1)).toBe("own");
    expect(expected.ofGroup(again, first(again))).toBeCloseTo(32_100 / 3, 0);
    end(again, 1, 500);
    const third = submit(group("fit", 3, { command: "fit {item}" }));
    expect(expected.ofTask(third, 1)).toBe(500);
  });

  it("row 001-11: else the average of its template, else its time-request, else unknown-task-duration", () => {
    const { expected, submit, end } = createWorld();
    const run = submit(group("fit", 10), group("other", 2, { timeRequest: 7 }), group("third", 2));
    expect(expected.ofGroup(run, first(run))).toBe(UNKNOWN);
    for (const [row, ms] of [100, 300].entries()) end(run, row, ms);
    expect([expected.ofTask(run, 5), expected.basisOf(run, 5)]).toEqual([200, "template"]);
    expect([expected.ofTask(run, 10), expected.basisOf(run, 10)]).toEqual([7000, "time-request"]);
    expect([expected.ofTask(run, 12), expected.basisOf(run, 12)]).toEqual([UNKNOWN, "unknown"]);
    expect([expected.ofGroup(run, run.groups[1]!), expected.ofGroup(run, run.groups[2]!)]).toEqual([7000, UNKNOWN]);
  });

  it("another name, command, cluster or item is another task", () => {
    const { expected, submit, end } = createWorld();
    const fit = { command: ["fit", "a"] };
    end(submit(group("fit", 1, fit)), 0, 100);
    const others: GroupSpec[] = [
      group("fit2", 1, fit),
      group("fit", 1, { command: ["fit", "b"] }),
      group("fit", 1, { command: ["fit a"] }),
      group("fit", 1, { command: "fit a" }),
      group("fit", 1, { ...fit, cluster: "slurm" }),
      group("fit", 2, fit),
    ];
    for (const other of others) expect(expected.ofTask(submit(other), 0), JSON.stringify(other)).toBe(UNKNOWN);
    // other amounts, priorities and the default cluster by its name are the same task
    expect(expected.ofTask(submit(group("fit", 1, { ...fit, cluster: "local", priority: 3, resources: {} })), 0)).toBe(
      100,
    );
  });

  it("failed, killed, cancelled and cut-off attempts teach nothing", () => {
    const { expected, submit, end, driver, learned } = createWorld();
    const run = submit(group("fit", 6, { retries: 1 }));
    end(run, 0, 9, 1);
    end(run, 0, 9, 1);
    end(run, 1, 9, -9);
    end(run, 2, 9, -15, Ending.TIME_LIMIT);
    end(run, 2, 9, -15, Ending.MEMORY);
    driver.send({ type: "run.canceled", at: 5000, run: run.id, reason: "enough", rows: [3] });
    end(run, 4, 9, 0, Ending.CANCELED);
    expect([learned.changes, run.meanMs, expected.ofTask(run, 5)]).toEqual([0, -1, UNKNOWN]);
    end(run, 1, 40);
    expect([learned.changes, run.meanMs, expected.ofTask(run, 5)]).toEqual([1, 40, 40]);
  });

  it("a group's number is renewed, and told, when it has changed by more than a fifth", () => {
    const { expected, submit, end } = createWorld();
    const told: [number, string, number][] = [];
    expected.onChange = (run, { spec: { name }, expectedMs }) => void told.push([run.id, name, expectedMs]);
    const run = submit(group("fit", 50), group("next", 4, { after: after(0) }));
    end(run, 0, 100);
    expect(told).toEqual([[run.id, "fit", 100]]);
    for (let row = 1; row < 10; row += 1) end(run, row, 110);
    expect([told.length, first(run).expectedMs]).toEqual([1, 100]);
    const other = submit(group("fit", 60));
    told.length = 0;
    for (let row = 10; row < 20; row += 1) end(run, row, 400);
    expect(told.map(([id]) => id)).toContain(other.id);
    expect(told.map(([id]) => id)).toContain(run.id);
    expect(first(run).expectedMs).toBeGreaterThan(200);
    told.length = 0;
    expected.forget(run);
    for (let row = 20; row < 50; row += 1) end(other, row, 4000);
    expect(told.map(([id]) => id)).not.toContain(run.id);
  });

  it("peaks of memory are kept by template and by identity, where somebody could tell", () => {
    const { expected, learned, submit, end } = createWorld();
    const run = submit(group("fit", 10));
    end(run, 0, 5);
    expect(expected.templateOf(run, first(run))?.peaks).toBeUndefined();
    for (let row = 1; row < 4; row += 1) end(run, row, 5, 0, Ending.EXIT, row * 4096);
    expect([...expected.templateOf(run, first(run))!.peaks!.values()]).toEqual([4096, 8192, 12_288]);
    const peaks = [...learned.identities.oldestFirst()].map((entry) => learned.identities.peak(entry));
    expect(peaks).toEqual([-1, 4096, 8192, 12_288]);
  });

  it("makes up from the state what was not saved, each success once", () => {
    const { driver, submit, end } = createWorld();
    const run = submit(group("fit", 10));
    for (let row = 0; row < 6; row += 1) end(run, row, 100 + row, row === 3 ? 1 : 0);
    const successor = createWorld();
    expect(successor.expected.catchUp(driver.state.runs.values(), 0)).toBe(5);
    expect(successor.expected.catchUp(driver.state.runs.values(), 0)).toBe(0);
    expect(successor.learned.identities.size).toBe(5);
    expect(successor.expected.ofTask(run, 5)).toBe(105);
    const later = createWorld();
    expect(later.expected.catchUp(driver.state.runs.values(), 1e9), "what was saved is known").toBe(0);
  });

  it("a million items have as many identities", () => {
    const { expected, learned, submit } = createWorld();
    const run = submit(group("fit", 1_000_000));
    for (let row = 0; row < run.total; row += 1) {
      const page = touch(run.table, row);
      const slot = row % run.table.pageRows;
      [page.state[slot], page.started[slot], page.finished[slot]] = [Task.DONE, 1, 2];
    }
    run.counts[Task.DONE] = run.total;
    expected.catchUp([run], 0);
    expect(learned.identities.size).toBe(1_000_000);
  });
});
