import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sortedPlaces } from "../../../src/core/radix.ts";
import { orderTasks } from "../../../src/core/task-order.ts";
import { findTasks } from "../../../src/core/task-query.ts";
import { Task } from "../../../src/core/states.ts";
import { createDriver, group, spec } from "./model.ts";

const finish = <T>(work: Generator<undefined, T>): { value: T; turns: number } => {
  for (let turns = 1; ; turns += 1) {
    const step = work.next();
    if (step.done === true) return { value: step.value, turns };
  }
};

describe("places by whole numbers", () => {
  it("are in order, and equal keys keep theirs", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.nat(0xffff_ffff))), (keys) => {
        const wanted = keys.map((_, i) => i).toSorted((a, b) => keys[a]! - keys[b]! || a - b);
        expect([...finish(sortedPlaces(Uint32Array.from(keys))).value]).toEqual(wanted);
      }),
    );
  });

  it("a million take many short turns", () => {
    const keys = Uint32Array.from({ length: 1_000_000 }, (_, i) => (i * 2_654_435_761) >>> 0);
    const work = sortedPlaces(keys);
    let longest = 0;
    for (let done = false; !done;) {
      const before = performance.now();
      done = work.next().done === true;
      longest = Math.max(longest, performance.now() - before);
    }
    // far from what a whole sort takes, also on a busy machine
    expect(longest).toBeLessThan(500);
  });
});

describe("an order of tasks", () => {
  /** Tasks of all kinds: done after some time, failed, running, not begun. */
  const setUp = () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 40), group("<i>b</i>", 20)]));
    const agent = driver.join();
    for (let row = 0; row < 50; row += 1) {
      driver.assign(agent, run.id, row);
      if (row < 40) driver.end(agent, run.id, [row], row % 3 === 0 ? 1 : 0);
      const page = run.table.pages[Math.floor(row / run.table.pageRows)]!;
      const slot = row % run.table.pageRows;
      page.started[slot] = 1000;
      page.finished[slot] = row < 40 ? 1000 + ((row * 7919) % 100) : 0;
    }
    return run;
  };

  it("is the same, from any place on, as the pages one after the other", () => {
    const run = setUp();
    const filters = [
      {},
      { states: new Set<number>([Task.FAILED]) },
      { names: new Set(["<i>b</i>"]) },
      { longer: 50, states: new Set<number>([Task.DONE, Task.FAILED]) },
    ];
    for (const filter of filters)
      for (const sort of ["index", "duration"] as const)
        for (const reverse of [false, true]) {
          const all = finish(findTasks(run, { ...filter, sort, reverse, limit: 1000 }, 5000)).value.rows;
          const { total, page } = finish(orderTasks(run, { sort, reverse, filter }, 5000)).value;
          expect(total).toBe(all.length);
          for (const offset of [0, 1, 7, total, total + 5, 10 ** 14])
            expect(page(offset, 9), `${sort} ${reverse} from ${offset}`).toEqual(all.slice(offset, offset + 9));
        }
  });
});
