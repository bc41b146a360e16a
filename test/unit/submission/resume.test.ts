import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PackedItems } from "../../../src/core/items.ts";
import type { Pairing } from "../../../src/core/pairing.ts";
import type { Run } from "../../../src/core/run.ts";
import type { Dependency, GroupSpec, RunSpec } from "../../../src/core/spec.ts";
import { Task } from "../../../src/core/states.ts";
import { skippedBy, type NewRun } from "../../../src/submission/resume.ts";
import { createDriver, group, spec } from "../core/model.ts";

/** An entry as people write it. */
interface Entry {
  readonly name: string;
  readonly command: string;
  readonly env: string;
  readonly cwd: string;
  /** Undefined: one task without items. */
  readonly items: readonly string[] | undefined;
  /** Names of entries it waits for. */
  readonly after: readonly number[];
}

const specOf = (entries: readonly Entry[]): { spec: RunSpec; items: Map<number, PackedItems> } => {
  const items = new Map<number, PackedItems>();
  const groups = entries.map((each, i): GroupSpec => {
    const packed = new PackedItems(false);
    for (const item of each.items ?? []) packed.add(item);
    if (each.items !== undefined) items.set(i, packed);
    const after = each.after.map((n): Dependency => ({ group: n, on: "ok" }));
    const source =
      each.items === undefined ? ({ kind: "one" } as const) : ({ kind: "list", count: packed.length } as const);
    return group(each.name, 1, { command: each.command, env: { A: each.env }, cwd: each.cwd, items: source, after });
  });
  return { spec: spec(groups), items };
};

/** The old run, of which some rows are done. */
const oldRun = (entries: readonly Entry[], isDone: (row: number) => boolean): Run => {
  const driver = createDriver();
  const { spec: of, items } = specOf(entries);
  const run = driver.state.nextRun;
  driver.send({ type: "run.opened", at: 1, run, uuid: "old", spec: of });
  for (const [index, packed] of items)
    driver.send({ type: "run.items", run, group: index, json: false, items: [...packed] });
  const total = entries.reduce((sum, each) => sum + (each.items?.length ?? 1), 0);
  const skipped = Array.from({ length: total }, (_, row) => row).filter(isDone);
  driver.send({ type: "run.committed", at: 2, run, skipped: skipped.flatMap((row) => [row, 1]) });
  const made = driver.state.runs.get(run)!;
  expect(made.counts[Task.DONE]).toBe(skipped.length);
  return made;
};

/** The rule as it is written, task by task. */
const naive = (now: readonly Entry[], old: readonly Entry[], isDone: (row: number) => boolean): number[] => {
  const tasks = (entries: readonly Entry[]) => {
    let row = 0;
    return entries.flatMap((entry, of) =>
      (entry.items ?? [undefined]).map((item) => ({ row: row++, entry, of, item })),
    );
  };
  const before = tasks(old);
  const all = tasks(now);
  const isSkipped = (task: (typeof all)[number]): boolean => {
    const { entry, item, row, of } = task;
    if (/\{run\}/.test(entry.command)) return false;
    const equal = before.filter(
      (each) =>
        each.entry.name === entry.name &&
        each.entry.command === entry.command &&
        each.entry.env === entry.env &&
        each.entry.cwd === entry.cwd &&
        each.item === item,
    );
    // of equal tasks in the same list, the one at the same place counts
    const nth = row - all.find((each) => each.of === of)!.row;
    const firstBefore = before.find((each) => each.entry.name === entry.name)?.row ?? 0;
    const here = equal.find((each) => each.row - firstBefore === nth);
    const candidates = here === undefined ? equal : [here];
    if (candidates.length === 0 || !candidates.every((each) => isDone(each.row))) return false;
    if (/\{task\}/.test(entry.command) && candidates[0]!.row !== row) return false;
    return entry.after.every((n) => all.filter((each) => each.of === n).every(isSkipped));
  };
  return all.filter(isSkipped).map(({ row }) => row);
};

const entries = fc
  .array(
    fc.record({
      command: fc.constantFrom("x {item}", "y {item}", "x {task}", "x {run}"),
      env: fc.constantFrom("1", "2"),
      cwd: fc.constantFrom("a", "b"),
      items: fc.option(fc.array(fc.constantFrom("p", "q", "r", "s"), { minLength: 1, maxLength: 5 }), {
        nil: undefined,
      }),
      after: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) => list.map((each, i): Entry => ({ ...each, name: `g${i}`, after: each.after && i > 0 ? [i - 1] : [] })));

const rowsOf = (ranges: readonly number[]): number[] =>
  ranges.flatMap((from, i) => (i % 2 === 1 ? [] : Array.from({ length: ranges[i + 1]! }, (_, n) => from + n)));

describe("what a resumed run has done is skipped", () => {
  it("as the rule says, task by task", async () => {
    await fc.assert(
      fc.asyncProperty(entries, entries, fc.boolean(), fc.integer(), async (first, second, same, seed) => {
        const isDone = (row: number): boolean => ((seed >> (row % 31)) & 1) === 0;
        const now = same ? first : second;
        const made = specOf(now);
        const skipped = rowsOf(await skippedBy(made satisfies NewRun, oldRun(first, isDone)));
        expect(skipped).toEqual(naive(now, first, isDone));
      }),
      { numRuns: 500 },
    );
  });

  it("a range and a list of the same numbers are the same items", async () => {
    const list: Entry = { name: "g0", command: "x {item}", env: "1", cwd: "a", items: ["1", "2", "3"], after: [] };
    const old = oldRun([list], (row) => row !== 1);
    const { spec: of } = specOf([list]);
    const range = { kind: "range", from: 0, step: 1, count: 5 } as const;
    const now = { spec: { ...of, groups: [{ ...of.groups[0]!, items: range }] }, items: new Map() };
    expect(rowsOf(await skippedBy(now, old))).toEqual([1, 3]);
  });

  it("item by item: a line is skipped as far as its own tasks are done, whatever became of the others", async () => {
    const matrix = { kind: "matrix", axes: [{ name: "s", values: ["x", "y", "z"] }], count: 3 } as const;
    const same: Dependency = { group: 0, on: "ok", items: "same" };
    const by: Dependency = { group: 1, on: "ok", items: { by: "s" } };
    const groups = [
      group("a", 1, { items: matrix }),
      group("b", 1, { items: matrix, after: [same] }),
      group("c", 1, { items: matrix, after: [by] }),
      group("end", 1, { after: [{ group: 2, on: "ok" }] }),
    ];
    const driver = createDriver();
    // all but the second of the first group, as after `--force`
    const old = driver.submit(spec(groups), { skipped: [0, 1, 2, 8] });
    const pairings = new Map<Dependency, Pairing>([
      [same, old.groups[1]!.links[0]!.pairing],
      [by, old.groups[2]!.links[0]!.pairing],
    ]);
    expect(rowsOf(await skippedBy({ spec: spec(groups), items: new Map(), pairings }, old))).toEqual([
      0, 2, 3, 5, 6, 8,
    ]);
    const other = { ...matrix, axes: [{ name: "s", values: ["z", "q", "x"] }] };
    const now = spec([group("a", 1, { items: other })]);
    expect(rowsOf(await skippedBy({ spec: now, items: new Map() }, old))).toEqual([0, 2]);
  });
});
