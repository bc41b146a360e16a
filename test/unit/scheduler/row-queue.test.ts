import fc from "fast-check";
import { expect, test } from "vitest";
import { RowQueue } from "../../../src/scheduler/row-queue.ts";

/** What a queue does, one row at a time. */
interface Naive {
  aside: number[];
  rows: number[];
}

const check = (queue: RowQueue, { aside, rows }: Naive): void => {
  expect(queue.size).toBe(aside.length + rows.length);
  expect(queue.aside).toBe(aside.length);
  expect([...queue].flatMap(({ from, count }) => Array.from({ length: count }, (_, i) => from + i))).toEqual([
    ...aside,
    ...rows,
  ]);
  for (const [index, row] of aside.entries()) expect([queue.rowAt(index), queue.countAt(index)]).toEqual([row, 1]);
  expect(queue.rowAt(aside.length)).toBe(rows[0]);
  expect(queue.rowAt(aside.length + 1)).toBeUndefined();
};

const steps = fc.array(
  fc.record({
    what: fc.constantFrom("push", "push", "beside", "take", "take", "aside", "take aside", "sift"),
    count: fc.integer({ min: 1, max: 5 }),
  }),
  { maxLength: 60 },
);

test("holds what a list of rows would: pushed, taken, set aside and sifted in any order", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const queue = new RowQueue();
      let naive: Naive = { aside: [], rows: [] };
      let next = 0;
      for (const { what, count } of all) {
        if (what === "push" || what === "beside") {
          // not beside the last, or just beside it
          if (what === "push") next += 2;
          queue.push(next, count);
          for (let i = 0; i < count; i += 1) naive.rows.push(next++);
        } else if (what === "take" && naive.rows.length > 0) {
          const most = Math.min(count, queue.countAt(queue.aside));
          queue.take(queue.aside, most);
          naive.rows.splice(0, most);
        } else if (what === "aside" && naive.rows.length > 0) {
          queue.setAside();
          naive.aside.push(naive.rows.shift()!);
        } else if (what === "take aside" && naive.aside.length > 0) {
          const index = count % naive.aside.length;
          queue.take(index, 1);
          naive.aside.splice(index, 1);
        } else if (what === "sift") {
          const isWanted = (row: number): boolean => row % 3 === count % 3;
          const everything = [...naive.aside, ...naive.rows];
          expect(queue.sift(isWanted)).toEqual(everything.filter(isWanted));
          naive = { aside: [], rows: everything.filter((row) => !isWanted(row)) };
        }
        check(queue, naive);
      }
    }),
  );
});

test("thousands of ranges go in their order, and those used up are forgotten on the way", () => {
  const queue = new RowQueue();
  const rows = Array.from({ length: 5000 }, (_, i) => i * 2);
  for (const row of rows) queue.push(row, 1);
  const taken: number[] = [];
  for (let row = queue.rowAt(0); row !== undefined; row = queue.rowAt(0)) {
    taken.push(row);
    queue.take(0, queue.countAt(0));
    if (taken.length === 3000) queue.push(20_000, 1);
  }
  expect(taken).toEqual([...rows, 20_000]);
  expect(queue.size).toBe(0);
});
