import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mayGoBehind, oneBefore } from "../../../src/core/ahead.ts";
import { PackedItems } from "../../../src/core/packed-items.ts";
import { type Paired, type Pairing, atOnce, pair } from "../../../src/core/pairing.ts";
import { type Run, groupOf } from "../../../src/core/run.ts";
import type { Condition, Dependency, ItemMatch } from "../../../src/core/spec.ts";
import { peek } from "../../../src/core/table.ts";
import { type Driver, Task, countOf, createDriver, group, runToEnd, spec } from "./model.ts";
import { replayAll, same, snapshotOf } from "./replays.ts";

/** Dependencies by item, one case at a time; histories.test.ts draws the rest beside a naive model. */

const by = (index: number, on: Condition = "ok", items: ItemMatch = "same"): Dependency => ({
  group: index,
  on,
  items,
});

const listOf = (name: string, texts: readonly string[], json = false): Paired => {
  const packed = new PackedItems(json);
  for (const text of texts) packed.add(text);
  return { name, source: { kind: "list", count: texts.length }, packed };
};
const rangeOf = (name: string, from: number, count: number): Paired => ({
  name,
  source: { kind: "range", from, step: 1, count },
  packed: undefined,
});

describe("items are paired", () => {
  const paired = (before: Paired, after: Paired, match: ItemMatch = "same"): Pairing =>
    atOnce(pair(before, after, match));

  it("at no cost where both have the same array, or the same texts in the same order", () => {
    expect(paired(rangeOf("a", 1, 10_000_000), rangeOf("b", 1, 10_000_000))).toEqual({ kind: "alike" });
    expect(paired(rangeOf("a", 1, 3), listOf("b", ["1", "2", "3"]))).toEqual({ kind: "alike" });
  });

  it("by their text, in whatever order they come and however they are stored", () => {
    fc.assert(
      fc.property(
        fc
          .uniqueArray(fc.string(), { minLength: 1, maxLength: 60 })
          .chain((texts) => fc.tuple(fc.constant(texts), fc.shuffledSubarray(texts, { minLength: texts.length }))),
        ([texts, other]) => {
          const found = paired(
            listOf("a", texts),
            listOf(
              "b",
              other.map((text) => JSON.stringify(text)),
              true,
            ),
          );
          for (const [place, text] of other.entries()) {
            const before = found.kind === "permuted" ? found.before[place]! : place;
            expect(texts[before]).toBe(text);
            expect(found.kind === "permuted" ? found.after[before] : place).toBe(place);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it("by a field: all of a key together, as a naive search finds them", () => {
    const keys = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(keys, keys, (before, after) => {
        const items = (list: readonly number[]): string[] =>
          list.map((k, n) => JSON.stringify({ n, of: { k: n % 2 === 0 ? k : String(k) } }));
        const work = (): Pairing =>
          paired(listOf("a", items(before), true), listOf("b", items(after), true), { by: "of.k" });
        const missing = after.find((k) => !before.includes(k));
        if (missing !== undefined) return void expect(work).toThrow(`no item of a has of.k "${missing}"`);
        const found = work();
        if (found.kind !== "keyed") throw new Error("not keyed");
        for (const [place, k] of after.entries()) {
          const key = found.after[place]!;
          expect(before.filter((_, other) => found.before[other] === key)).toEqual(before.filter((each) => each === k));
          expect(found.size[key]).toBe(before.filter((each) => each === k).length);
          const mates = [...found.places.subarray(found.from[key]!, found.from[key + 1]!)];
          expect(mates).toEqual([...after.keys()].filter((other) => after[other] === k));
        }
      }),
      { numRuns: 200 },
    );
  });

  it("and an error names the first item that is missing, is there twice, or lacks the field", () => {
    const [ab, ac, aa] = [listOf("one", ["a", "b"]), listOf("two", ["a", "c"]), listOf("two", ["a", "a"])];
    expect(() => paired(ab, ac)).toThrow(`one has no item "c", which two has`);
    expect(() => paired(ab, aa)).toThrow(`two has the item "a" twice`);
    expect(() => paired(aa, ab)).toThrow(`two has the item "a" twice`);
    expect(() => paired(ab, listOf("two", ["b"]))).toThrow(`two has no item "a", which one has`);
    expect(() => paired(ab, ac, { by: "k" })).toThrow("item 0 of one: no field 'k' in");
  });
});

/** Two stages of an array. */
const stages = (
  count: number,
  on: Condition = "ok",
  more: object = {},
): { driver: Driver; run: Run; agent: number } => {
  const driver = createDriver();
  const run = driver.submit(spec([group("align", count, more), group("call", count, { after: [by(0, on)] })]));
  return { driver, run, agent: driver.join() };
};
const statesOf = ({ driver, run }: { driver: Driver; run: Run }): number[] =>
  Array.from({ length: run.total }, (_, row) => driver.stateOf(run, row));
const reasonOf = (run: Run, row: number): string =>
  run.reasons[peek(run.table, row)!.reason[row % run.table.pageRows]!]!;

describe("a task that waits for its item", () => {
  it("is ready when its own predecessor is done, not when all are", () => {
    const world = stages(3);
    const { driver, run, agent } = world;
    driver.assign(agent, run.id, 1);
    driver.end(agent, run.id, [1], 0);
    expect([...driver.ready.get(run.id)!]).toEqual([0, 2, 4]);
    expect(statesOf(world)).toEqual([1, Task.DONE, 1, Task.NEW, 1, Task.NEW]);
  });

  it("one failed sample costs its own line alone, and the reason says so", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([
        group("align", 4),
        group("call", 4, { after: [by(0)] }),
        group("sort", 4, { after: [by(1)] }),
        group("merge", 1, { after: [{ group: 2, on: "any" }] }),
      ]),
    );
    runToEnd(driver, (_, row) => (row === 2 ? 1 : 0));
    expect([countOf(run, Task.DONE), countOf(run, Task.FAILED), countOf(run, Task.CANCELED)]).toEqual([10, 1, 2]);
    expect([reasonOf(run, 6), reasonOf(run, 10)]).toEqual([
      "align failed for this item",
      "call was cancelled for this item",
    ]);
    expect(driver.stateOf(run, 12)).toBe(Task.DONE);
  });

  it("on any and on failed: each for its own item; a handler whose item did not fail is not needed", () => {
    const driver = createDriver();
    const groups = [
      group("a", 2),
      group("any", 2, { after: [by(0, "any")] }),
      group("handler", 2, { after: [by(0, "failed")] }),
    ];
    const run = driver.submit(spec([...groups, group("end", 2, { after: [by(2)] })]));
    runToEnd(driver, (_, row) => (row === 0 ? 1 : 0));
    const states = Array.from({ length: 8 }, (_, row) => driver.stateOf(run, row));
    expect(states).toEqual([Task.FAILED, 15, 15, 15, 15, Task.CANCELED, 15, 15]);
    expect([run.unneeded, reasonOf(run, 5)]).toEqual([1, "not needed: a did not fail for this item"]);
  });

  it("by a key: waits for all of the key, and fails with the first of them", () => {
    const driver = createDriver();
    const list = { items: { kind: "list", count: 0 } } as const;
    const run = driver.submit(
      spec([group("align", 4, list), group("call", 2, { ...list, after: [by(0, "ok", { by: "s" })] })]),
      {
        json: true,
        items: new Map([
          [0, ["a", "b", "a", "b"].map((s, n) => JSON.stringify({ s, n }))],
          [1, ["b", "a"].map((s) => JSON.stringify({ s }))],
        ]),
      },
    );
    const agent = driver.join();
    for (const row of [0, 1, 2, 3]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0], 0);
    driver.end(agent, run.id, [1], 1);
    expect([driver.stateOf(run, 4), driver.stateOf(run, 5)]).toEqual([Task.CANCELED, Task.NEW]);
    expect(reasonOf(run, 4)).toBe("align failed for this s");
    driver.end(agent, run.id, [2], 0);
    expect([...driver.ready.get(run.id)!]).toEqual([5]);
    // the counts of keys are not in snapshots: they follow from the states
    same(replayAll(snapshotOf(driver.state), 5), driver.state);
  });

  it("waits for whole groups as well", () => {
    const driver = createDriver();
    const both = [by(0), { group: 1, on: "ok" } as const];
    const run = driver.submit(spec([group("a", 3), group("gate", 1), group("b", 3, { after: both })]));
    const agent = driver.join();
    for (const row of [0, 1, 3]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0], 0);
    expect(driver.ready.get(run.id)!.has(4)).toBe(false);
    driver.end(agent, run.id, [3], 0);
    expect([...driver.ready.get(run.id)!].filter((row) => row > 3)).toEqual([4]);
    driver.end(agent, run.id, [1], 0);
    expect(driver.ready.get(run.id)!.has(5)).toBe(true);
  });

  it("retry of what failed runs that line again, and nothing that is done", () => {
    const world = stages(3);
    const { driver, run } = world;
    runToEnd(driver, (_, row) => (row === 1 ? 1 : 0));
    driver.send({ type: "run.retried", at: 9000, run: run.id, which: "failed" });
    expect([...driver.ready.get(run.id)!]).toEqual([1]);
    runToEnd(driver, () => 0);
    expect(statesOf(world)).toEqual(Array.from({ length: 6 }, () => Task.DONE));
    expect(peek(run.table, 0)!.attempt[0]).toBe(1);
  });

  it("a cancelled task takes only those of its item along; max-fails ends all", () => {
    const { driver, run } = stages(3);
    driver.send({ type: "run.canceled", at: 9000, run: run.id, rows: [2], reason: "test" });
    expect([countOf(run, Task.CANCELED), driver.stateOf(run, 5)]).toEqual([2, Task.CANCELED]);
    const strict = createDriver();
    const other = strict.submit(spec([group("a", 9), group("b", 9, { after: [by(0)] })], { maxFails: 0 }));
    runToEnd(strict, (_, row) => (row === 4 ? 1 : 0));
    expect([countOf(other, Task.FAILED), other.finished > 0, other.canceled]).toEqual([
      1,
      true,
      expect.stringContaining("max-fails"),
    ]);
  });

  it("an array of a million holds nothing until its first task ends, and is ready in ranges", () => {
    const ranges: [number, number][] = [];
    const driver = createDriver({ told: { ready: (_, from, count) => void ranges.push([from, count]) } });
    const n = 1_000_000;
    const run = driver.submit(spec([group("a", n), group("b", n, { after: [by(0)] })]));
    expect(run.table.pages.every((page) => page === undefined)).toBe(true);
    const agent = driver.join();
    driver.send({ type: "tasks.assigned", at: 1, agent, parts: [{ run: run.id, ranges: [500, 3000] }] });
    ranges.length = 0;
    // whatever the order in which they end
    driver.end(
      agent,
      run.id,
      Array.from({ length: 3000 }, (_, i) => 500 + ((i * 7) % 3000)),
      0,
    );
    expect(ranges).toEqual([[n + 500, 3000]]);
  });

  it("may be handed ahead behind its own predecessor, if that is all it waits for", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([group("a", 2), group("b", 2, { after: [by(0)] }), group("c", 2, { after: [by(0), by(1)] })]),
    );
    const agent = driver.join();
    driver.assign(agent, run.id, 1);
    const may = (before: number, row: number): boolean => mayGoBehind(run, before, groupOf(run.groups, row), row);
    expect([may(1, 3), may(1, 2), may(0, 3), may(1, 5), may(3, 5)]).toEqual([true, false, false, false, false]);
    driver.ahead(agent, run.id, 3);
    expect([oneBefore(run, run.groups[1]!, 3), driver.stateOf(run, 3)]).toEqual([1, Task.NEW]);
    driver.end(agent, run.id, [1, 3], 0);
    expect([driver.stateOf(run, 3), [...driver.ready.get(run.id)!]]).toEqual([Task.DONE, [0, 5]]);
  });
});
