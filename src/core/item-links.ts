import { itemsOf } from "./item-source.ts";
import { type Paired, type Pairing, NO_PLACE, atOnce, pair } from "./pairing.ts";
import type { Group, Run } from "./run.ts";
import type { Condition, Dependency, ItemMatch } from "./spec.ts";
import { Task, isFinalTask } from "./states.ts";
import { Flag, peek } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * Dependencies by item (decision 0042): each task of one group waits for its own predecessors in another. What is open follows
 * from the states of tasks; only keys with several tasks are counted, and the counts can be taken again at any time.
 */
export interface ItemLink {
  /** The groups: one waited for, one that waits. */
  readonly before: number;
  readonly after: number;
  readonly on: Condition;
  readonly match: ItemMatch;
  readonly pairing: Pairing;
}

/** Pairings that were made when the submission was checked. */
export type Pairings = ReadonlyMap<Dependency, Pairing>;

export type Verdict = "met" | "never" | "open";

/** What a condition says of something that has ended or not, and of which some ended badly. */
export const verdictOn = (on: Condition, ended: boolean, bad: boolean): Verdict => {
  if (on === "ok") return bad ? "never" : ended ? "met" : "open";
  if (!ended) return "open";
  return on === "any" || bad ? "met" : "never";
};

/** Undefined only for what another version let in: what is submitted was checked. */
const pairingOf = (before: Group, after: Group, match: ItemMatch): Pairing | undefined => {
  try {
    return atOnce(pair(pairedOf(before), pairedOf(after), match));
  } catch {
    return undefined;
  }
};

const pairedOf = ({ spec, items }: Group): Paired => ({ name: spec.name, ...itemsOf(spec, items) });

/** Tells groups who waits for them, and how many dependencies are left that are on all of a group or a run. */
export const linkGroups = (groups: readonly Group[], pairings: Pairings): void => {
  for (const group of groups)
    for (const dependency of group.spec.after) {
      if (!("group" in dependency)) continue;
      const { group: index, on, items: match } = dependency;
      const before = groups[index]!;
      const pairing = match === undefined ? undefined : (pairings.get(dependency) ?? pairingOf(before, group, match));
      const link =
        pairing === undefined ? undefined : { before: index, after: group.index, on, match: match!, pairing };
      if (link !== undefined) {
        group.links.push(link);
        before.followers.push(link);
        group.waits -= 1;
      }
      before.dependents.push({ group: group.index, on, link });
    }
};

/** How a task ended, for those that wait for it. An unneeded handler is no failure. */
export const Outcome = { OPEN: 0, GOOD: 1, BAD: 2 } as const;

export const outcomeOfRow = (run: Run, row: Row): number => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  const state = page?.state[slot] ?? Task.NEW;
  if (!isFinalTask(state)) return Outcome.OPEN;
  if (state === Task.DONE) return Outcome.GOOD;
  return (page!.flags[slot]! & Flag.UNNEEDED) === 0 ? Outcome.BAD : Outcome.GOOD;
};

/** The place before that one place after waits for, where it is one. */
export const placeBefore = (pairing: Pairing, place: number): number => {
  if (pairing.kind === "alike") return place;
  return pairing.kind === "permuted" ? pairing.before[place]! : NO_PLACE;
};

/** The same the other way round. */
export const placeAfter = (pairing: Pairing, place: number): number => {
  if (pairing.kind === "alike") return place;
  return pairing.kind === "permuted" ? pairing.after[place]! : NO_PLACE;
};

/** The rows that wait for one, at the other end of a link. */
export function* rowsBehind({ groups }: Run, { before, after, pairing }: ItemLink, row: Row): Generator<Row> {
  const place = row - groups[before]!.first;
  const { first } = groups[after]!;
  if (pairing.kind !== "keyed") return void (yield first + placeAfter(pairing, place));
  const key = pairing.before[place]!;
  for (let at = pairing.from[key]!; at < pairing.from[key + 1]!; at += 1) yield first + pairing.places[at]!;
}

/** What a link says to the task at a place of the group that waits. */
export const judgeLink = (run: Run, { before, on, pairing }: ItemLink, place: number): Verdict => {
  if (pairing.kind === "keyed") {
    const key = pairing.after[place]!;
    return verdictOn(on, pairing.ended[key] === pairing.size[key], pairing.bad[key]! > 0);
  }
  const outcome = outcomeOfRow(run, run.groups[before]!.first + placeBefore(pairing, place));
  return verdictOn(on, outcome !== Outcome.OPEN, outcome === Outcome.BAD);
};

/** Whether a task waits for nothing more. */
export const isFree = (run: Run, { waits, links, first }: Group, row: Row): boolean => {
  if (waits !== 0) return false;
  for (const link of links) if (judgeLink(run, link, row - first) !== "met") return false;
  return true;
};

/** Calls `found` for each range of rows of a group that have ended. */
export const forEachEnded = (run: Run, group: Group, found: (from: Row, count: number) => void): void => {
  const { table } = run;
  const end = group.first + group.count;
  let from = -1;
  for (let row = group.first; row <= end;) {
    const page = row < end ? peek(table, row) : undefined;
    const pageEnd = Math.min(end, (Math.floor(row / table.pageRows) + 1) * table.pageRows);
    const isOver = page !== undefined && isFinalTask(page.state[row % table.pageRows]!);
    if (isOver && from < 0) from = row;
    if (!isOver && from >= 0) {
      found(from, row - from);
      from = -1;
    }
    row = page === undefined && row < end ? pageEnd : row + 1;
  }
};

/** Nothing of a run has ended, as far as the counts of its links know. */
export const resetLinks = ({ groups }: Run): void => {
  for (const { links } of groups)
    for (const { pairing } of links)
      if (pairing.kind === "keyed") {
        pairing.ended.fill(0);
        pairing.bad.fill(0);
      }
};

/** Counts one task that has ended; returns the number of its key. */
export const countEnded = (run: Run, pairing: Extract<Pairing, { kind: "keyed" }>, row: Row, first: Row): number => {
  const key = pairing.before[row - first]!;
  pairing.ended[key]! += 1;
  if (outcomeOfRow(run, row) === Outcome.BAD) pairing.bad[key]! += 1;
  return key;
};

/** Counts what has ended, of a run that was read from a snapshot. */
export const countLinks = (run: Run): void => {
  resetLinks(run);
  for (const group of run.groups)
    for (const { pairing } of group.followers)
      if (pairing.kind === "keyed")
        forEachEnded(run, group, (from, count) => {
          for (let row = from; row < from + count; row += 1) countEnded(run, pairing, row, group.first);
        });
};
