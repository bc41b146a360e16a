import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply } from "../../../src/core/apply.ts";
import { advance, reopen } from "../../../src/core/moves.ts";
import { type Run, createRun } from "../../../src/core/run.ts";
import { NO_EFFECTS, createState } from "../../../src/core/state.ts";
import { TASK_STATES, Task, mayAdvanceTask, mayReopenTask } from "../../../src/core/states.ts";
import { stateOf, touch } from "../../../src/core/table.ts";
import { createDriver, group, runToEnd, spec } from "./model.ts";

const code = fc.integer({ min: 0, max: TASK_STATES.length - 1 });

/** A run whose first task is in this state. */
const runIn = (from: number): Run => {
  const run = createRun(1, "u", spec([group("a", 3)]), 0, new Map());
  touch(run.table, 0).state[0] = from;
  run.counts[Task.NEW]! -= 1;
  run.counts[from]! += 1;
  return run;
};

describe("moves of tasks", () => {
  it("advance moves forward only, and never out of a final state; what it refuses is counted and changes nothing", () => {
    fc.assert(
      fc.property(code, code, (from, to) => {
        const state = createState();
        const run = runIn(from);
        const before = [...run.counts];
        const allowed = mayAdvanceTask(from, to);
        expect(advance(state, run, 0, to)).toBe(allowed);
        expect(stateOf(run.table, 0)).toBe(allowed ? to : from);
        expect(state.refused.count).toBe(allowed ? 0 : 1);
        if (!allowed) expect([...run.counts]).toEqual(before);
        if (!allowed) expect(state.refused.last).toBe(`run 1, row 0: ${TASK_STATES[from]} to ${TASK_STATES[to]}`);
        expect(run.counts.reduce((sum, n) => sum + n, 0)).toBe(3);
      }),
    );
  });

  it("reopen begins another attempt of a task that has one, or after retry waits anew; nothing else", () => {
    fc.assert(
      fc.property(code, code, (from, to) => {
        const state = createState();
        const run = runIn(from);
        touch(run.table, 0).reason[0] = 7;
        const allowed = mayReopenTask(from, to);
        expect(reopen(state, run, 0, false, to)).toBe(allowed);
        expect(stateOf(run.table, 0)).toBe(allowed ? to : from);
        expect(touch(run.table, 0).reason[0]).toBe(allowed ? 0 : 7);
        expect(state.refused.count).toBe(allowed ? 0 : 1);
        expect(run.counts.reduce((sum, n) => sum + n, 0)).toBe(3);
      }),
    );
    expect(mayReopenTask(Task.EXECUTING, Task.PENDING)).toBe(true);
    expect(mayReopenTask(Task.PENDING, Task.PENDING)).toBe(false);
    expect(mayReopenTask(Task.DONE, Task.PENDING)).toBe(false);
    expect(mayReopenTask(Task.DONE, Task.NEW)).toBe(true);
    expect(mayReopenTask(Task.EXECUTING, Task.NEW)).toBe(false);
  });

  it("an event whose moves are refused is applied without them, and does not throw", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 2)]));
    runToEnd(driver, () => 1);
    expect(driver.state.refused.count).toBe(0);
    // as a fault might have left it: the run is over, one of its tasks is not
    touch(run.table, 1).state[1] = Task.EXECUTING;
    apply(driver.state, { type: "run.retried", at: 9999, run: run.id, which: "all" }, NO_EFFECTS);
    expect(driver.state.refused).toEqual({
      count: 1,
      last: `run ${run.id}, row 1: AGENT_EXECUTING to NEW`,
    });
    expect(stateOf(run.table, 1)).toBe(Task.EXECUTING);
    expect(stateOf(run.table, 0)).toBe(Task.PENDING);
  });
});

describe("who writes states", () => {
  const root = join(import.meta.dirname, "../../../src");
  const WRITES = [
    // a row's state, a group's base state
    /\.state\[[^\]]*\]!?\s*(?:[-+|&^]|\?\?|\|\||&&)?=(?![=>])/,
    /\.state\.(?:fill|set|copyWithin)\(/,
    /\.base\s*=(?![=>])/,
    // a pilot's, a launch's
    /\b(?:pilot|launch|known|each|found)\.state\s*=(?![=>])/,
  ];
  /** `touch` fills a new page with the states that its rows had without one. */
  const MAY = new Map([["core/table.ts", 1]]);

  const writesIn = (text: string): string[] =>
    text.split("\n").filter((line) => WRITES.some((pattern) => pattern.test(line)));

  it("only moves.ts", () => {
    for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".ts") || name === "core/moves.ts") continue;
      const found = writesIn(readFileSync(join(root, name), "utf8"));
      expect(found.length, `${name}: ${found.join(" | ")}`).toBe(MAY.get(name) ?? 0);
    }
  });

  it("and the patterns find those that are there", () => {
    expect(writesIn(readFileSync(join(root, "core/moves.ts"), "utf8"))).toHaveLength(6);
    for (const line of ["page.state[slot] = to;", "page.state[slot]! += 1;", "run.table.pages[0]!.state.fill(3);"])
      expect(writesIn(line)).toHaveLength(1);
    for (const line of ["if (page.state[slot] === to)", "page.state[slot]! >= to", "pilot.state === x"])
      expect(writesIn(line)).toHaveLength(0);
  });
});
