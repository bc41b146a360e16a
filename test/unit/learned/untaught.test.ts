import { describe, expect, it } from "vitest";
import type { Run } from "../../../src/core/run.ts";
import { type Page, touch } from "../../../src/core/table.ts";
import { createUntaught } from "../../../src/learned/untaught.ts";
import { createDriver, group, spec } from "../core/model.ts";

const TASKS = 10_000;

/** A task of the run ends at `at`, after `took`. */
const end = (run: Run, row: number, took: number, at: number): Page => {
  const page = touch(run.table, row);
  page.started[row % run.table.pageRows] = at - took;
  page.finished[row % run.table.pageRows] = at;
  return page;
};

const world = () => {
  const driver = createDriver();
  const runs = [0, 1].map(() => driver.submit(spec([group("a", TASKS / 2), group("b", TASKS / 2)])));
  const taught: [Run, string, number, number, number][] = [];
  const untaught = createUntaught(
    (run, of, row, { took, at }, i) => void taught.push([run, of.spec.name, row, took[i]!, at[i]!]),
  );
  return { runs, taught, untaught };
};

describe("tasks that have taught nothing yet", () => {
  it("teach in order, each once, with the group they are of; however many there are, few of them wait", () => {
    const { runs, taught, untaught } = world();
    const ended: unknown[] = [];
    let asked = 0;
    for (let row = 0; row < TASKS; row += 1) {
      // two runs whose tasks end in turn, three at a time
      const run = runs[Math.floor(row / 3) % 2]!;
      if (untaught.add(run, row, end(run, row, row + 0.5, 1e12 + row))) asked += 1;
      ended.push([run, row < TASKS / 2 ? "a" : "b", row, row + 0.5, 1e12 + row]);
      expect(ended.length - taught.length).toBeLessThanOrEqual(4096);
    }
    untaught.teachAll();
    expect(taught).toEqual(ended);
    expect(asked, "whoever is asked for later is asked once for all that wait").toBe(3);
    untaught.teachAll();
    expect(taught.length).toBe(TASKS);
  });

  it("may end while others teach: they teach after them", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", TASKS)]));
    const taught: number[] = [];
    const untaught = createUntaught((_run, _group, row) => {
      taught.push(row);
      if (row < 100) untaught.add(run, row + 100, end(run, row + 100, 1, 1));
      if (row === 50) untaught.teachAll();
    });
    for (let row = 0; row < 100; row += 1) untaught.add(run, row, end(run, row, 1, 1));
    untaught.teachAll();
    untaught.teachAll();
    expect(taught.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i));
  });
});
