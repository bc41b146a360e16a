import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLocalQueue, type LocalQueueOptions, type Queueable } from "../../../src/agent/local-queue.ts";

interface Waiting extends Queueable {
  readonly id: number;
  readonly size: number;
}

const task = (id: number, size = 1, priority = 0): Waiting => ({ id, size, shape: `cpus=${size}`, priority });

const queueOf = (tasks: Waiting[], options?: LocalQueueOptions) => {
  const queue = createLocalQueue<Waiting>(options);
  for (const each of tasks) queue.push(each);
  return queue;
};

const upTo = (room: number) => (each: Waiting) => (each.size <= room ? each.size : undefined);

const explode = (each: Waiting): number | undefined => {
  if (each.size === 1) throw new Error("no");
  return undefined;
};

describe("LocalQueue.next", () => {
  it("gives higher priorities first, and the order of arrival within one", () => {
    const queue = queueOf([task(1), task(2, 2), task(3, 1, 5), task(4, 2, -1), task(5)]);
    const order = [];
    for (let next = queue.next(upTo(9)); next !== undefined; next = queue.next(upTo(9))) order.push(next.task.id);
    expect(order).toEqual([3, 1, 2, 5, 4]);
    expect(queue.size).toBe(0);
  });

  it("lets small tasks pass a large one a bounded number of times", () => {
    const queue = queueOf([task(0, 4), ...Array.from({ length: 50 }, (_, nth) => task(nth + 1))], { bypasses: 3 });
    const started = [queue.next(upTo(1)), queue.next(upTo(1)), queue.next(upTo(1)), queue.next(upTo(1))];
    expect(started.map((each) => each?.task.id)).toEqual([1, 2, 3, undefined]);
    expect(queue.next(upTo(3))).toBeUndefined();
    expect(queue.next(upTo(4))).toEqual({ task: task(0, 4), slot: 4 });
    expect(queue.next(upTo(1))!.task.id).toBe(4);
  });

  it("remembers how often a task was passed when a more important one comes in between", () => {
    const queue = queueOf([task(0, 4), task(1), task(2), task(3)], { bypasses: 2 });
    expect(queue.next(upTo(1))!.task.id).toBe(1);
    queue.push(task(9, 1, 7));
    expect(queue.next(upTo(1))!.task.id).toBe(9);
    expect(queue.next(upTo(1))!.task.id).toBe(2);
    expect(queue.next(upTo(1))).toBeUndefined();
  });

  it("asks once per shape, and tries a bounded number of shapes", () => {
    const asked: number[] = [];
    const refuse = (each: Waiting): undefined => void asked.push(each.size);
    const queue = queueOf([task(1, 5, 3), task(2, 5, 2), task(3, 6), task(4, 5)]);
    expect(queue.next(refuse)).toBeUndefined();
    expect(asked).toEqual([5, 6]);
    asked.length = 0;
    const many = queueOf(
      Array.from({ length: 1000 }, (_, nth) => task(nth, nth)),
      { lookahead: 10 },
    );
    expect(many.next(refuse)).toBeUndefined();
    expect(asked.length).toBe(10);
  });

  it("stays whole when allocate throws", () => {
    const queue = queueOf([task(1, 2), task(2, 1)]);
    expect(() => queue.next(explode)).toThrow("no");
    expect(queue.next(upTo(9))!.task.id).toBe(1);
    expect(queue.next(upTo(9))!.task.id).toBe(2);
  });
});

describe("LocalQueue.remove and takeBack", () => {
  it("take tasks out wherever they are", () => {
    const [one, two, three, four] = [task(1), task(2), task(3), task(4, 2)];
    const queue = queueOf([one, two, three, four]);
    expect([queue.remove(one), queue.remove(one), queue.remove(three)]).toEqual([true, false, true]);
    expect([one, two, three, four].map((each) => queue.has(each))).toEqual([false, true, false, true]);
    expect(() => queue.push(two)).toThrow("queued twice");
    queue.push(one);
    expect([queue.next(upTo(9))?.task, queue.next(upTo(9))?.task, queue.next(upTo(9))?.task]).toEqual([two, four, one]);
  });

  it("give back the least urgent first", () => {
    const queue = queueOf([task(1), task(2, 2), task(3, 1, 5), task(4, 2, -1), task(5)]);
    expect(queue.takeBack(3).map((each) => each.id)).toEqual([4, 5, 2]);
    expect(queue.next(upTo(9))!.task.id).toBe(3);
    expect(queue.takeBack(10).map((each) => each.id)).toEqual([1]);
    expect(queue.takeBack(1)).toEqual([]);
  });
});

describe("properties of LocalQueue", () => {
  it("agrees with a sorted list", () => {
    const step = fc.oneof(
      fc.record({ size: fc.integer({ min: 1, max: 4 }), priority: fc.integer({ min: -1, max: 1 }) }),
      fc.record({ start: fc.integer({ min: 0, max: 4 }) }),
      fc.record({ remove: fc.nat(60) }),
      fc.record({ back: fc.nat(3) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const queue = createLocalQueue<Waiting>({ bypasses: 2 });
        let model: { task: Waiting; passed: number }[] = [];
        const all: Waiting[] = [];
        for (const each of steps) {
          if ("size" in each) {
            const added = task(all.length, each.size, each.priority);
            all.push(added);
            queue.push(added);
            model.push({ task: added, passed: 0 });
            model = model.toSorted((a, b) => b.task.priority - a.task.priority || a.task.id - b.task.id);
          } else if ("start" in each) {
            const first = model[0];
            const fitting = model.find((entry) => entry.task.size <= each.start);
            const expected = fitting === first || (first?.passed ?? 0) < 2 ? fitting : undefined;
            if (expected !== undefined && expected !== first) first!.passed++;
            model = model.filter((entry) => entry !== expected);
            expect(queue.next(upTo(each.start))?.task).toBe(expected?.task);
          } else if ("remove" in each) {
            const removed = all[each.remove];
            if (removed === undefined) continue;
            expect(queue.remove(removed)).toBe(model.some((entry) => entry.task === removed));
            model = model.filter((entry) => entry.task !== removed);
          } else {
            const expected = model.splice(Math.max(0, model.length - each.back)).toReversed();
            expect(queue.takeBack(each.back)).toEqual(expected.map((entry) => entry.task));
          }
          expect(queue.size).toBe(model.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("starts 50,000 of one shape, and as many of different shapes, before the test's time is over", () => {
    for (const shapes of [1, 50_000]) {
      const queue = queueOf(Array.from({ length: 50_000 }, (_, nth) => task(nth, nth % shapes)));
      let count = 0;
      while (queue.next(() => true) !== undefined) count++;
      expect(count).toBe(50_000);
    }
  });
});
