import { setImmediate as nextTurn } from "node:timers/promises";
import type { PackedItems } from "../core/items.ts";
import { type Run, indexOfRow } from "../core/run.ts";
import { placeBefore } from "../core/item-links.ts";
import { isJsonItems, itemsOf, storedAt } from "../core/item-source.ts";
import type { Pairing } from "../core/pairing.ts";
import { type Dependency, type GroupSpec, type RunSpec, itemCount } from "../core/spec.ts";
import { Task } from "../core/states.ts";
import { stateOf } from "../core/table.ts";
import { usesOf, workOf } from "../core/work.ts";

/**
 * Which tasks of a new run an earlier one has done: those of equal name, item, command, environment and directory, if
 * all that they wait for, which may be the tasks of their item alone, is skipped too. The environment is what the file and the options give: what was captured
 * differs with each login.
 */

/** A run that is about to be committed. */
export interface NewRun {
  readonly spec: RunSpec;
  readonly items: ReadonlyMap<number, PackedItems>;
  /** Of dependencies by item: which tasks belong together. */
  readonly pairings?: ReadonlyMap<Dependency, Pairing>;
}

/** Rows looked at before others get a turn. */
const AT_ONCE = 20_000;

/** The text of an item; JSON is told from text, and a task without items from one with an empty item. */
const itemAt = (spec: GroupSpec, stored: PackedItems | undefined, at: number): string => {
  const items = itemsOf(spec, stored);
  const text = storedAt(items, at);
  return text === undefined ? "" : `${isJsonItems(items) ? "j" : "t"}${text}`;
};

interface Match {
  readonly spec: GroupSpec;
  readonly first: number;
  readonly stored: PackedItems | undefined;
}

/** For each task of a group whether an earlier run has done it. */
async function* doneOf(own: Match, old: Run, before: Match, sameNumber: (i: number, j: number) => boolean) {
  const isDone = (i: number): boolean => stateOf(old.table, before.first + i) === Task.DONE;
  const count = itemCount(own.spec.items);
  const earlier = itemCount(before.spec.items);
  /** By item: whether all tasks with it are done, and where one of them is. Made when the order differs. */
  let byItem: Map<string, { done: boolean; readonly at: number }> | undefined;
  const lookUp = async (item: string): Promise<{ done: boolean; at: number } | undefined> => {
    if (byItem === undefined) {
      byItem = new Map();
      for (let i = 0; i < earlier; i += 1) {
        const text = itemAt(before.spec, before.stored, i);
        const known = byItem.get(text);
        if (known === undefined) byItem.set(text, { done: isDone(i), at: i });
        else known.done &&= isDone(i);
        if (i % AT_ONCE === AT_ONCE - 1) await nextTurn();
      }
    }
    return byItem.get(item);
  };
  for (let i = 0; i < count; i += 1) {
    if (i % AT_ONCE === AT_ONCE - 1) await nextTurn();
    const item = itemAt(own.spec, own.stored, i);
    if (i < earlier && itemAt(before.spec, before.stored, i) === item) {
      yield isDone(i) && sameNumber(i, i);
      continue;
    }
    const found = await lookUp(item);
    yield found !== undefined && found.done && sameNumber(i, found.at);
  }
}

/** Whether all that the task at a place waits for, item by item, is skipped; `marks` say it of each place before. */
const allowedBy = (pairing: Pairing, marks: Uint8Array | undefined): ((place: number) => boolean) => {
  if (marks === undefined) return () => false;
  if (pairing.kind !== "keyed") return (place) => marks[placeBefore(pairing, place)] === 1;
  const skipped = new Uint32Array(pairing.size.length);
  for (const [place, key] of pairing.before.entries()) skipped[key]! += marks[place]!;
  return (place) => skipped[pairing.after[place]!] === pairing.size[pairing.after[place]!];
};

/** Ascending ranges `[from, count, …]` of the new run's rows. */
export const skippedBy = async ({ spec, items, pairings }: NewRun, old: Run): Promise<number[]> => {
  const ranges: number[] = [];
  const add = (row: number): void => {
    if (ranges.length > 0 && ranges.at(-2)! + ranges.at(-1)! === row) ranges[ranges.length - 1]! += 1;
    else ranges.push(row, 1);
  };
  const earlier = new Map(old.groups.map((group) => [group.spec.name, group]));
  const firsts: number[] = [];
  let next = 0;
  for (const { items: of } of spec.groups) {
    firsts.push(next);
    next += itemCount(of);
  }
  const rowsOf = new Map<number, number[]>();
  const whole = new Set<number>();
  /** Of groups that have some: which places are skipped. */
  const marksOf = new Map<number, Uint8Array>();
  // a group may stand before those it waits for: each is looked at once all of these are known
  const open = new Set(spec.groups.keys());
  for (let progress = true; progress && open.size > 0;) {
    progress = false;
    for (const index of open) {
      const group = spec.groups[index]!;
      const before = group.after.flatMap((each) => ("group" in each ? [each.group] : []));
      if (before.some((each) => open.has(each))) continue;
      open.delete(index);
      progress = true;
      const known = earlier.get(group.name);
      const links = group.after.flatMap((each) => {
        const pairing = pairings?.get(each);
        return "group" in each && pairing !== undefined ? [{ group: each.group, pairing }] : [];
      });
      const wholes = before.filter((each) => !links.some((link) => link.group === each));
      const uses = usesOf(group);
      if (known === undefined || uses.has("run") || !wholes.every((each) => whole.has(each))) continue;
      if (workOf(spec.cwd, group) !== workOf(old.spec.cwd, known.spec)) continue;
      const own = { spec: group, first: firsts[index]!, stored: items.get(index) };
      const numbered = uses.has("task");
      const { start, step } = spec.numbering;
      const sameNumber = (i: number, j: number): boolean =>
        !numbered || start + (own.first + i) * step === indexOfRow(old, known.first + j);
      const allowed = links.map((link) => allowedBy(link.pairing, marksOf.get(link.group)));
      const marks = new Uint8Array(itemCount(group.items));
      const rows: number[] = [];
      let row = own.first;
      for await (const done of doneOf(own, old, { ...known, stored: known.items }, sameNumber)) {
        const place = row - own.first;
        if (done && allowed.every((isAllowed) => isAllowed(place))) {
          rows.push(row);
          marks[place] = 1;
        }
        row += 1;
      }
      marksOf.set(index, marks);
      rowsOf.set(index, rows);
      if (rows.length === row - own.first) whole.add(index);
    }
  }
  for (const index of spec.groups.keys()) for (const row of rowsOf.get(index) ?? []) add(row);
  return ranges;
};
