import type { Group, Run } from "../core/run.ts";
import { Task } from "../core/states.ts";
import type { Expected } from "../learned/expected.ts";
import { runningOf } from "./running.ts";
import { type Guess, type Times, meanOf } from "./work.ts";

/** What to expect of tasks of which little or nothing is known. */

/** Of a task that ran longer than any before: how long it takes in all, at least. */
const OVERTIME = 1.25;

/**
 * The first tasks to end are the short ones. Where all that is known comes from them, those that still run count too,
 * each as the mean of what took longer than it has run.
 */
export const withRunning = (took: Float32Array, running: readonly number[]): ArrayLike<number> => {
  const sorted = took.toSorted();
  const above = new Float64Array(sorted.length + 1);
  for (let i = sorted.length - 1; i >= 0; i -= 1) above[i] = above[i + 1]! + sorted[i]!;
  const values = [...took];
  for (const elapsed of running) {
    let from = 0;
    while (from < sorted.length && sorted[from]! <= elapsed) from += 1;
    values.push(from === sorted.length ? elapsed * OVERTIME : above[from]! / (sorted.length - from));
  }
  return values;
};

/** How different templates are from each other, and from their time-requests, as far as nothing better is known. */
const APART = 0.7;
const APART_FROM_REQUEST = 0.5;
/** What comes later may be of another kind than all that ended. */
const ANOTHER_KIND = 0.4;
/** As many templates as that counts for. */
const PRIOR = 3;

/** Centre and spread of logarithms, with what is assumed without any. */
const spreadOf = (
  logs: readonly number[],
  apart: number,
): { readonly centre: number; readonly guess: Omit<Guess, "level"> } => {
  const n = logs.length;
  const centre = n === 0 ? 0 : meanOf(logs);
  const squares = logs.reduce((sum, each) => sum + (each - centre) ** 2, 0);
  const off = Math.sqrt((squares + PRIOR * apart * apart) / (n + PRIOR));
  return { centre, guess: { off, together: Math.hypot(ANOTHER_KIND, off / Math.sqrt(Math.max(1, n))) } };
};

/**
 * What to guess for groups of whose tasks nothing is known: where others of the run have ended, the middle of theirs; of
 * those with a time-request, as much of it as the others took of theirs.
 */
export const guessFor = (
  run: Run,
  levels: Uint32Array,
  now: number,
  expected: Expected,
): ((group: Group) => Omit<Times, "key">) => {
  const means: number[] = [];
  const running: number[] = [];
  const shares: number[] = [];
  for (const group of run.groups) {
    const mean = group.done === 0 ? -1 : (expected.templateOf(run, group)?.took.mean ?? -1);
    if (mean < 0) {
      const first = group.base === Task.NEW ? undefined : runningOf(run, group, now, 1)[0];
      if (first !== undefined) running.push(first);
      continue;
    }
    means.push(mean);
    if (group.spec.timeRequest !== undefined)
      shares.push(Math.log(Math.max(1, mean) / (group.spec.timeRequest * 1000)));
  }
  const seen = Array.from(withRunning(Float32Array.from(means), means.length === 0 ? [] : running), (mean) =>
    Math.log(Math.max(1, mean)),
  );
  const others = spreadOf(seen, APART);
  const requests = spreadOf(shares, APART_FROM_REQUEST);
  return (group) => {
    const { timeRequest } = group.spec;
    const level = levels[group.index]!;
    if (timeRequest !== undefined) {
      const asked = timeRequest * 1000;
      return { values: [asked * Math.exp(Math.min(0, requests.centre))], guess: { ...requests.guess, level } };
    }
    const middle = seen.length > 0 ? Math.exp(others.centre) : expected.ofGroup(run, group);
    return { values: [middle], guess: { ...others.guess, level } };
  };
};
