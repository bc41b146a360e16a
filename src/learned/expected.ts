import { type Group, type Run, groupOf, isFinishedRun } from "../core/run.ts";
import { peakOf } from "../core/peak.ts";
import { Task } from "../core/states.ts";
import { type Page, peek } from "../core/table.ts";
import type { Row, RunId } from "../core/ids.ts";
import { createFollowers } from "./followers.ts";
import { type Lanes, newLanes } from "../core/hash.ts";
import { type RunKeys, identityOf, keysOf, rememberLast } from "./keys.ts";
import type { Learned } from "./learned.ts";
import { createLookup } from "./lookup.ts";
import type { Template } from "./templates.ts";
import { createUntaught } from "./untaught.ts";

/**
 * How long tasks are expected to take: a task's own last success, else the average of its template, else its
 * time-request, else `unknown-task-duration`. Groups carry the number (`group.expectedMs`), an array of a million one;
 * it is renewed when it has changed by more than a fifth.
 */
export interface Expected {
  /** Milliseconds for one task of a group: of a single task its own, of an array the mean over some of its tasks. */
  ofGroup(run: Run, group: Group): number;
  ofTask(run: Run, row: Row): number;
  /** What that is based on. */
  basisOf(run: Run, row: Row): Basis;
  /** What is known about the template of a group. */
  templateOf(run: Run, group: Group): Template | undefined;
  /** Its number: groups of one template have the same. */
  templateKey(run: Run, group: Group): number;
  /** What these tasks took the last time they succeeded; undefined where that is known of less than half of them. */
  ownTimes(run: Run, group: Group, rows: readonly Row[]): number[] | undefined;
  /** Works out the expectations of a run that came in, or came back. */
  begin(run: Run): void;
  /** A run has ended: nobody asks any more. */
  forget(run: Run): void;
  /** A task of this run reached its end; if it ended well, it teaches. */
  taskEnded(run: Run, row: Row): void;
  /**
   * Makes up for what a server before this one saw and did not save: tasks that ended since `since`, in epoch
   * milliseconds. Returns how many taught something.
   */
  catchUp(runs: Iterable<Run>, since: number): number;
  /** Called when the expectation of a group has changed by more than a fifth. Set once. */
  onChange: (run: Run, group: Group) => void;
  /**
   * When what ended tasks teach is worked out: soon, by default at once. Until then `ofGroup`, which is asked while tasks are placed,
   * may be behind; whatever else is asked has it worked out first. Set once.
   */
  later: (work: () => void) => void;
}

export type Basis = "own" | "template" | "time-request" | "unknown";

export interface ExpectedOptions {
  readonly defaultCluster: string;
  /** Milliseconds to expect where nothing is known, by where the group's tasks go. */
  readonly unknownMs: (group: Group) => number;
}

/** No task takes longer; times that say so are wrong and teach nothing. */
const MOST_MS = 10 * 366 * 86_400_000;
/** A smaller change of an expectation is not told. */
const FIFTH = 0.2;
/** Nor is one by less than this many milliseconds. */
const LEAST_MS = 0.1;
/** How many tasks of an array are looked up for its one number, and of a whole run. */
const SAMPLED = 16;
const SAMPLED_OF_RUN = 4096;
/** Weight of the newest duration in a run's moving average. */
const NEWEST = 0.1;

const isNews = (before: number, now: number): boolean =>
  before < 0 ? now >= 0 : Math.abs(now - before) > Math.max(LEAST_MS, before * FIFTH);

/** What a task that ended well took; -1 for any other, and for times that cannot be. */
const tookOf = (page: Page, slot: number): number => {
  if (page.state[slot] !== Task.DONE || page.started[slot] === 0) return -1;
  const took = page.finished[slot]! - page.started[slot]!;
  return took >= 0 && took <= MOST_MS ? took : -1;
};

/** Tasks of a run that ended well since a time. */
const forEachSuccess = (run: Run, since: number, visit: (row: Row, took: number, at: number) => void): void => {
  for (const [index, page] of run.table.pages.entries()) {
    const first = index * run.table.pageRows;
    const end = page === undefined ? first : Math.min(run.total, first + run.table.pageRows);
    for (let row = first; row < end; row += 1) {
      const at = page!.finished[row - first]!;
      const took = at < since ? -1 : tookOf(page!, row - first);
      if (took >= 0) visit(row, took, at);
    }
  }
};

/** Whether this very success is known: results are not learned twice. */
const isKnown = ({ identities }: Learned, of: RunKeys, group: Group, row: Row, at: number, hash: Lanes): boolean => {
  identityOf(of, group, row, hash);
  const entry = identities.find(hash.lo, hash.hi);
  return entry >= 0 && identities.at(entry) >= at;
};

const samplesFor = (run: Run): number =>
  Math.max(1, Math.min(SAMPLED, Math.floor(SAMPLED_OF_RUN / Math.max(1, run.groups.length))));

export const createExpected = (learned: Learned, options: ExpectedOptions): Expected => {
  const { templates } = learned;
  const keys = new Map<RunId, RunKeys>();
  const ofEnded = rememberLast((run) => keysOf(run, options.defaultCluster));
  const followers = createFollowers();
  const hash = newLanes();
  const { ownMs, ownTimes, templateMs, groupMs } = createLookup(learned);

  const begin = (run: Run): RunKeys => {
    const known = keys.get(run.id);
    if (known !== undefined) return known;
    const made = keysOf(run, options.defaultCluster);
    keys.set(run.id, made);
    const most = samplesFor(run);
    for (const group of run.groups) group.expectedMs = groupMs(made, group, most);
    followers.add(run, made);
    return made;
  };

  /** Those of runs that have ended are not kept, but for one. */
  const keysFor = (run: Run): RunKeys => keys.get(run.id) ?? (isFinishedRun(run) ? ofEnded(run) : begin(run));

  const forget = (run: Run): void => {
    teachAll();
    const known = keys.get(run.id);
    if (known === undefined) return;
    keys.delete(run.id);
    followers.remove(run, known);
  };

  const tell = (number: number): void => {
    for (const { run, group } of followers.of(number)) {
      const of = keys.get(run.id);
      if (of === undefined) continue;
      const ms = groupMs(of, group, samplesFor(run));
      if (!isNews(group.expectedMs, ms)) continue;
      group.expectedMs = ms;
      expected.onChange(run, group);
    }
  };

  const teach = (of: RunKeys, run: Run, group: Group, row: Row, took: number, at: number): void => {
    const number = of.numbers[group.index]!;
    // tasks that start no process are all alike
    const identity = group.spec.executor === "null" ? undefined : hash;
    if (identity !== undefined) identityOf(of, group, row, identity);
    const template = learned.record(number, identity, took, peakOf(run, row)?.bytes ?? null, at);
    const now = group.spec.items.kind === "one" ? template.took.last : template.took.mean;
    if (!isNews(template.announced, now)) return;
    template.announced = now;
    tell(number);
  };

  const { add, teachAll } = createUntaught((run, group, row, ends, i) =>
    teach(keysFor(run), run, group, row, ends.took[i]!, ends.at[i]!),
  );

  const keysNow = (run: Run): RunKeys => {
    teachAll();
    return keysFor(run);
  };

  /** Of tasks without an identity nobody knows which were learned. */
  const catchUpRun = (run: Run, since: number): number => {
    const of = keysFor(run);
    let taught = 0;
    forEachSuccess(run, since, (row, took, at) => {
      const group = groupOf(run.groups, row);
      if (group.spec.executor === "null" || isKnown(learned, of, group, row, at, hash)) return;
      teach(of, run, group, row, took, at);
      taught += 1;
    });
    return taught;
  };

  const expected: Expected = {
    ofGroup: (run, group) => {
      keysFor(run);
      return group.expectedMs >= 0 ? group.expectedMs : options.unknownMs(group);
    },
    ofTask: (run, row) => {
      const group = groupOf(run.groups, row);
      const ms = group.spec.items.kind === "one" ? -1 : ownMs(keysNow(run), group, row);
      if (ms >= 0) return ms;
      const like = templateMs(keysNow(run).numbers[group.index]!, group);
      return like >= 0 ? like : expected.ofGroup(run, group);
    },
    basisOf: (run, row) => {
      const group = groupOf(run.groups, row);
      const of = keysNow(run);
      if (ownMs(of, group, row) >= 0) return "own";
      if (templateMs(of.numbers[group.index]!, group) >= 0) return "template";
      return group.spec.timeRequest === undefined ? "unknown" : "time-request";
    },
    templateOf: (run, group) => templates.get(keysNow(run).numbers[group.index]!),
    templateKey: (run, group) => keysFor(run).numbers[group.index]!,
    ownTimes: (run, group, rows) => ownTimes(keysNow(run), group, rows),
    begin: (run) => void keysNow(run),
    forget,
    taskEnded: (run, row) => {
      const page = peek(run.table, row);
      const took = page === undefined ? -1 : tookOf(page, row % run.table.pageRows);
      if (took < 0) return;
      // at once: the first ends of a run say how far ahead its agents are filled
      run.meanMs = run.meanMs < 0 ? took : run.meanMs + NEWEST * (took - run.meanMs);
      if (add(run, row, page!)) expected.later(teachAll);
    },
    catchUp: (runs, since) => {
      teachAll();
      let taught = 0;
      for (const run of runs) if (run.counts[Task.DONE]! > 0) taught += catchUpRun(run, since);
      return taught;
    },
    onChange: () => undefined,
    later: (work) => work(),
  };
  return expected;
};
