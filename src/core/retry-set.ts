import type { Resources } from "./resources.ts";
import type { Group } from "./run.ts";
import type { Row } from "./ids.ts";

/**
 * `retry --set` gives reopened tasks other amounts than their run's file. What was set stays with a row until it is
 * reopened again. A group holds each set once, and a byte for each of its tasks: a million tasks stay a column.
 */
export interface RetrySet {
  /** Integer units; they win over the file, the item, a formula and what was learned. */
  readonly resources?: Resources;
  /** Seconds. */
  readonly timeLimit?: number;
  readonly timeRequest?: number;
  readonly retries?: number;
}

export interface RetrySets {
  /** By number, counted from 1; a free one is undefined. */
  readonly sets: (RetrySet | undefined)[];
  /** By row of the group: the number of its set; 0: none. */
  readonly rows: Uint8Array;
}

/** A row holds the number of its set in 8 bits; 0 is none. */
export const MOST_SETS = 255;

/** What `retry --set` gave a row. */
export const setOf = ({ sets, first }: Group, row: Row): RetrySet | undefined =>
  sets === undefined ? undefined : sets.sets[sets.rows[row - first]! - 1];

/** What a task asks for with its set; an amount of zero is not counted, but for cpus. */
export const withSet = (resources: Resources, set: RetrySet | undefined): Resources => {
  if (set?.resources === undefined) return resources;
  const all = Object.entries({ ...resources, ...set.resources });
  return Object.fromEntries(all.filter(([name, units]) => units > 0 || name === "cpus"));
};

export const timeLimitOf = (group: Group, row: Row): number | undefined =>
  setOf(group, row)?.timeLimit ?? group.spec.timeLimit;

export const retriesOf = (group: Group, row: Row): number => setOf(group, row)?.retries ?? group.spec.retries;

/** The numbers of a group's sets that its rows have. */
const usedIn = ({ rows }: RetrySets): Set<number> => {
  const used = new Set<number>();
  for (const number of rows) if (number > 0) used.add(number);
  return used;
};

/** A number for one more set; undefined if its rows have as many different ones as can be told apart. */
export const freeSet = ({ sets }: Pick<Group, "sets">): number | undefined => {
  if (sets === undefined) return 1;
  const used = usedIn(sets);
  for (let number = 1; number <= MOST_SETS; number += 1) if (!used.has(number)) return number;
  return undefined;
};

/** Gives rows of a group a set; one that nobody has any more makes room. Nothing changes where there is no room. */
export const giveSet = (group: Group, rows: readonly Row[], set: RetrySet): void => {
  const number = freeSet(group);
  if (number === undefined || rows.length === 0) return;
  group.sets ??= { sets: [], rows: new Uint8Array(group.count) };
  group.sets.sets[number - 1] = set;
  for (const row of rows) group.sets.rows[row - group.first] = number;
};

/** A row begins again: what was set for it is over. */
export const dropSet = ({ sets, first }: Group, row: Row): void => {
  if (sets !== undefined) sets.rows[row - first] = 0;
};

/** What a group's sets say, of those that some row has: for snapshots and comparisons. */
export const setsInUse = (group: Group): RetrySets | undefined => {
  if (group.sets === undefined) return undefined;
  const used = usedIn(group.sets);
  if (used.size === 0) return undefined;
  const sets = Array.from({ length: Math.max(...used) }, (_, i) => (used.has(i + 1) ? group.sets!.sets[i] : undefined));
  return { sets, rows: group.sets.rows };
};
