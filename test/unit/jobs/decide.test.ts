import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Head, type Place, type Submission, decide } from "../../../src/jobs/decide.ts";

/** Two priorities, few starts and pressures: so that many are equal. */
const place = fc.record({
  priority: fc.integer({ min: 0, max: 1 }),
  start: fc.integer({ min: 0, max: 4 }),
  pressure: fc.integer({ min: 0, max: 5 }),
});
const heads = fc.array(fc.tuple(place, fc.integer({ min: 1, max: 250 })), { maxLength: 6 });
const submitted = fc.array(fc.tuple(place, fc.boolean()), { maxLength: 8 });
const limit = fc.integer({ min: 0, max: 6 });
const most = fc.constantFrom(1, 3, 100, 5000);

const compare = (a: Place, b: Place): number => b.priority - a.priority || a.start - b.start || b.pressure - a.pressure;

const inOrder = (list: readonly (readonly [Place, number])[]): Head[] =>
  list.map(([at, tasks]) => ({ ...at, tasks })).toSorted(compare);

const numbered = (list: readonly (readonly [Place, boolean])[]): Submission[] =>
  list.map(([at, leaving], i) => ({ ...at, leaving, id: i + 1 }));

/** As the issue says it, one submission at a time. */
const naive = (situation: { limit: number; mostInArray: number; submitted: Submission[]; heads: Head[] }) => {
  const size = Math.min(100, situation.mostInArray);
  const queue = situation.heads.flatMap((head) => {
    const parts: Head[] = [];
    for (let left = head.tasks; left > 0; left -= size) parts.push({ ...head, tasks: Math.min(size, left) });
    return parts;
  });
  const submit: number[] = [];
  while (situation.submitted.length + submit.length < situation.limit && queue.length > 0)
    submit.push(queue.shift()!.tasks);
  // places of those that leave are spoken for, as far as they are within the limit
  const leavers = situation.submitted.filter(({ leaving }) => leaving).length;
  const over = Math.max(0, situation.submitted.length - situation.limit);
  queue.splice(0, Math.max(0, leavers - over));
  const staying = situation.submitted
    .filter(({ leaving }) => !leaving)
    .toSorted((a, b) => compare(b, a) || b.id - a.id);
  const takeBack: number[] = [];
  // with more than the limit there already, those that go make no room
  if (leavers - over >= 0 || leavers === 0)
    for (const next of queue) {
      const worst = staying.shift();
      if (worst === undefined || compare(next, worst) >= 0) break;
      const higher = next.priority > worst.priority;
      const twice = next.pressure > worst.pressure && next.pressure >= 2 * worst.pressure;
      if (!higher && !twice) break;
      takeBack.push(worst.id);
    }
  return { submit, takeBack };
};

describe("what is submitted of a bucket, and taken back", () => {
  it("rows 001-50 and 001-62: is what a naive reading says, never over the limit, highest first", () => {
    fc.assert(
      fc.property(limit, most, submitted, heads, (n, mostInArray, there, waiting) => {
        const situation = { limit: n, mostInArray, submitted: numbered(there), heads: inOrder(waiting) };
        const decision = decide(situation);
        expect(decision.submit.length).toBeLessThanOrEqual(Math.max(0, n - there.length));
        for (const tasks of decision.submit) expect(tasks).toBeLessThanOrEqual(Math.min(100, mostInArray));
        if (there.length <= n) expect(decision).toEqual(naive(situation));
        else expect(decision.submit).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  it("settles: what was taken back does not come back for whom it went", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), submitted, heads, (n, there, waiting) => {
        let inManager = numbered(there)
          .slice(0, n)
          .map((each) => ({ ...each, leaving: false }));
        let here = inOrder(waiting).flatMap((head) =>
          Array.from({ length: head.tasks }, () => ({ ...head, tasks: 1 })),
        );
        let id = 100;
        for (let turn = 0; turn < 50; turn += 1) {
          const { submit, takeBack } = decide({ limit: n, mostInArray: 1, submitted: inManager, heads: here });
          if (submit.length === 0 && takeBack.length === 0) return;
          const gone = inManager.filter((each) => takeBack.includes(each.id));
          const added = here.slice(0, submit.length).map((each) => ({ ...each, leaving: false, id: (id += 1) }));
          inManager = [...inManager.filter((each) => !takeBack.includes(each.id)), ...added];
          here = [...here.slice(submit.length), ...gone.map((each) => ({ ...each, tasks: 1 }))].toSorted(compare);
          expect(inManager.length).toBeLessThanOrEqual(n);
        }
        expect.fail("it goes back and forth");
      }),
      { numRuns: 500 },
    );
  });

  it("takes one back for a higher priority, or an equal one with twice its pressure, and for nothing less", () => {
    const waiting: Submission[] = [{ id: 1, priority: 0, start: 5, pressure: 10, leaving: false }];
    const with_ = (head: Place) =>
      decide({ limit: 1, mostInArray: 1, submitted: waiting, heads: [{ ...head, tasks: 1 }] });
    expect(with_({ priority: 0, start: 0, pressure: 19 }).takeBack).toEqual([]);
    expect(with_({ priority: 0, start: 0, pressure: 20 }).takeBack).toEqual([1]);
    expect(with_({ priority: 1, start: 9, pressure: 1 }).takeBack).toEqual([1]);
    expect(with_({ priority: 0, start: 9, pressure: 40 }).takeBack, "it goes behind").toEqual([]);
    expect(with_({ priority: -1, start: 0, pressure: 40 }).takeBack).toEqual([]);
  });
});
