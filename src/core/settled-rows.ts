import { isAhead } from "./held.ts";
import { type ItemLink, Outcome, countEnded, isFree, judgeLink, outcomeOfRow, placeAfter } from "./item-links.ts";
import { advance } from "./moves.ts";
import { NO_PLACE } from "./pairing.ts";
import { type Group, type Run, groupOf } from "./run.ts";
import type { Effects, State } from "./state.ts";
import { Task } from "./states.ts";
import { peek, stateOf } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * What the end of single tasks says to those that wait for them one by one: which may be placed, and which never will be. Both are
 * gathered as ranges: the million tasks of an array go on as few of them.
 */
export interface Settled {
  /** Rows that may be placed, in the order in which they were found. */
  free: number[];
  isSorted: boolean;
  /** Rows whose link can never be met, and whether what they wait for failed or was cancelled. */
  readonly never: Never[];
}

interface Never {
  readonly link: ItemLink;
  readonly from: Row;
  count: number;
  readonly failed: boolean;
}

export const newSettled = (): Settled => ({ free: [], isSorted: true, never: [] });

const addFree = (settled: Settled, row: Row): void => {
  const { free } = settled;
  if (free.length > 0 && free.at(-1)! > row) settled.isSorted = false;
  free.push(row);
};

const addNever = ({ never }: Settled, link: ItemLink, row: Row, failed: boolean): void => {
  const last = never.at(-1);
  if (last?.link === link && last.failed === failed && last.from + last.count === row) last.count += 1;
  else never.push({ link, from: row, count: 1, failed });
};

/** Tells one task that waits what became of one that it waits for. */
const settle = (
  state: State,
  run: Run,
  link: ItemLink,
  group: Group,
  row: Row,
  ended: Row,
  settled: Settled,
  effects: Effects,
): void => {
  if (group.waits < 0 || stateOf(run.table, row) !== Task.NEW) return;
  const verdict = judgeLink(run, link, row - group.first);
  if (verdict === "open") return;
  if (verdict === "never") return addNever(settled, link, row, stateOf(run.table, ended) === Task.FAILED);
  if (!isFree(run, group, row)) return;
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  if (page !== undefined && isAhead(page, slot)) {
    advance(state, run, row, Task.SCHEDULING);
    effects.arrived(run, row, page.agent[slot]!);
    return;
  }
  advance(state, run, row, Task.PENDING);
  addFree(settled, row);
};

/** Tells all that wait for these rows, `[from, count, …]`, one by one. */
export const followRows = (
  state: State,
  run: Run,
  rows: readonly number[],
  settled: Settled,
  effects: Effects,
): void => {
  for (let i = 0; i < rows.length; i += 2) {
    const { first, followers } = groupOf(run.groups, rows[i]!);
    const end = rows[i]! + rows[i + 1]!;
    for (const link of followers) {
      const { pairing } = link;
      const group = run.groups[link.after]!;
      for (let row = rows[i]!; row < end; row += 1) {
        if (pairing.kind === "keyed") {
          const key = countEnded(run, pairing, row, first);
          // whatever waits for the key hears of it once: at its first bad end, or at its last
          const isBad = outcomeOfRow(run, row) === Outcome.BAD;
          if (pairing.ended[key]! < pairing.size[key]! && !(isBad && pairing.bad[key] === 1)) continue;
          for (let at = pairing.from[key]!; at < pairing.from[key + 1]!; at += 1)
            settle(state, run, link, group, group.first + pairing.places[at]!, row, settled, effects);
          continue;
        }
        const place = placeAfter(pairing, row - first);
        if (place !== NO_PLACE) settle(state, run, link, group, group.first + place, row, settled, effects);
      }
    }
  }
};

/** Says which rows may be placed, as ranges in order. */
export const giveOut = (run: Run, settled: Settled, effects: Effects): void => {
  const free = settled.isSorted ? settled.free : settled.free.toSorted((a, b) => a - b);
  for (let i = 0; i < free.length;) {
    const from = i;
    i += 1;
    while (i < free.length && free[i] === free[i - 1]! + 1) i += 1;
    effects.ready(run, free[from]!, i - from);
  }
};
