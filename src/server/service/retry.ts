import type { RetryOptions, Service } from "../../api/service.ts";
import { readArchiveSync } from "../../archive/archive.ts";
import { nearest } from "../../config/nearest.ts";
import { readRetrySet, refuseUnknown } from "../../config/retry-set.ts";
import type { Source } from "../../config/source.ts";
import { rowsBehind } from "../../core/item-links.ts";
import { isJsonItems, itemsOf, storedAt } from "../../core/item-source.ts";
import { resourcesAt } from "../../core/items.ts";
import { type RetrySet, freeSet, withSet } from "../../core/retry-set.ts";
import {
  type Group,
  type Run,
  type Shape,
  baseShapeOf,
  groupOf,
  indexOfRow,
  isFinishedRun,
  keyOf,
} from "../../core/run.ts";
import { bringBack } from "../../core/snapshot.ts";
import { TASK_STATES, Task, isFinalTask } from "../../core/states.ts";
import { Flag, stateOf, touch } from "../../core/table.ts";
import { SlipwayError } from "../../errors.ts";
import { createFitCheck } from "../../submission/fits.ts";
import type { ServiceContext } from "./context.ts";
import { rowOfTask } from "./run-shelf.ts";
import type { Row } from "../../core/ids.ts";

/**
 * `retry`: which tasks of a run that has ended run again, and with which amounts. Everything is decided here, before the
 * event is journaled; the tasks themselves keep their cluster, queue, environment and command.
 */

const inSet: Source = { locate: (path) => ({ where: "set", key: String(path[0] ?? "set") }) };

/** With formulas over the attempt each one is checked; more would keep others waiting. */
const MOST_ATTEMPTS = 101;

const bad = (detail: string): never => {
  throw new SlipwayError("bad-request", { detail });
};

const groupsNamed = (run: Run, names: readonly string[]): Set<Group> => {
  const found = new Set<Group>();
  for (const name of names) {
    const group = run.groups.find(({ spec }) => spec.name === name);
    if (group !== undefined) found.add(group);
    else {
      const near = nearest(
        name,
        run.groups.map(({ spec }) => spec.name),
      );
      bad(`run ${run.id} has no tasks named '${name}'${near === undefined ? "" : `; did you mean ${near}?`}`);
    }
  }
  return found;
};

/** Rows of one group. */
interface Part {
  readonly group: Group;
  readonly rows: "all" | readonly Row[];
}

/** What waits for one of these rows, directly or not: whole groups, and item by item single rows. */
function* behind(run: Run, chosen: readonly Row[]): Generator<Part> {
  const whole = new Set<Group>();
  const seen = new Set<Row>();
  const work: Part[] = [];
  const add = (group: Group, rows: Part["rows"]): void => {
    if (rows.length > 0) work.push({ group, rows });
  };
  const byGroup = new Map<Group, Row[]>();
  for (const row of chosen) {
    const group = groupOf(run.groups, row);
    const rows = byGroup.get(group);
    if (rows === undefined) byGroup.set(group, [row]);
    else rows.push(row);
  }
  for (const [group, rows] of byGroup) add(group, rows);
  for (let part = work.pop(); part !== undefined; part = work.pop())
    for (const { group: index, link } of part.group.dependents) {
      const next = run.groups[index]!;
      if (whole.has(next)) continue;
      let rows: Part["rows"] = "all";
      if (link !== undefined && part.rows !== "all") {
        const found: Row[] = [];
        for (const row of part.rows)
          for (const after of rowsBehind(run, link, row))
            if (!seen.has(after)) {
              seen.add(after);
              found.push(after);
            }
        rows = found;
      } else whole.add(next);
      add(next, rows);
      yield { group: next, rows };
    }
}

const isUnneeded = (run: Run, row: Row): boolean =>
  (touch(run.table, row).flags[row % run.table.pageRows]! & Flag.UNNEEDED) !== 0;

/** The rows that were asked for. */
function* chosenRows(run: Run, { which, tasks, states, names }: RetryOptions): Generator<Row> {
  if (tasks !== undefined) {
    yield* new Set(tasks.map((index) => rowOfTask(run, index)));
    return;
  }
  const wanted = states === undefined ? undefined : new Set(states.map((name) => TASK_STATES.indexOf(name)));
  const named = names === undefined ? run.groups : groupsNamed(run, names);
  for (const group of named)
    for (let row = group.first; row < group.first + group.count; row += 1) {
      const now = stateOf(run.table, row);
      // an unneeded handler neither failed nor was cancelled
      if (wanted === undefined ? which === "all" || (now !== Task.DONE && !isUnneeded(run, row)) : wanted.has(now))
        yield row;
    }
}

/** With what was cancelled behind them, which waits for them again. Ascending ranges `[from, count, …]`. */
const withCancelled = (run: Run, chosen: readonly Row[]): number[] => {
  const rows = new Set(chosen);
  const take = (row: Row): void => {
    if (stateOf(run.table, row) === Task.CANCELED) rows.add(row);
  };
  for (const { group, rows: found } of behind(run, chosen)) {
    if (found !== "all") found.forEach(take);
    else for (let row = group.first; row < group.first + group.count; row += 1) take(row);
  }
  const ranges: number[] = [];
  for (const row of [...rows].toSorted((a, b) => a - b))
    if (ranges.length > 0 && ranges.at(-2)! + ranges.at(-1)! === row) ranges[ranges.length - 1]! += 1;
    else ranges.push(row, 1);
  return ranges;
};

const eachRow = (ranges: readonly number[], visit: (row: Row) => void): void => {
  for (let i = 0; i < ranges.length; i += 2)
    for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) visit(row);
};

/** Refuses amounts that can never be had, naming the first task; each shape is looked at once. */
const checkSet = (context: ServiceContext, run: Run, ranges: readonly number[], set: RetrySet): void => {
  const fits = createFitCheck({
    ...context,
    state: context.engine.state,
    described: context.standings.described,
  });
  const asked = new Set<string>();
  const looked = new Set<string>();
  const groups = new Set<Group>();
  eachRow(ranges, (row) => groups.add(groupOf(run.groups, row)));
  for (const group of groups) {
    for (const name of Object.keys({ ...group.spec.resources, ...group.spec.itemResources })) asked.add(name);
    if (freeSet(group) === undefined)
      bad(`the tasks of '${group.spec.name}' have been retried with too many different amounts; submit a new run`);
  }
  refuseUnknown(set, asked, inSet);
  eachRow(ranges, (row) => {
    const group = groupOf(run.groups, row);
    const shape = baseShapeOf(group, row);
    const byAttempt = group.spec.attemptResources !== undefined;
    // where an item has a say in later attempts, each is looked at
    const key = keyOf(shape);
    if (looked.has(key) && !(byAttempt && group.spec.itemResources !== undefined)) return;
    looked.add(key);
    const retries = set.retries ?? group.spec.retries;
    if (byAttempt && retries >= MOST_ATTEMPTS)
      bad(`retries: '${group.spec.name}' has amounts that use attempt: at most ${MOST_ATTEMPTS - 1}, not ${retries}`);
    const task = `${run.id}.${indexOfRow(run, row)}`;
    // what a redirected task asks for here is worked out by the check itself
    const first = group.spec.redirect === undefined ? shape.resources : group.spec.resources;
    for (let attempt = 1; attempt <= (byAttempt ? retries + 1 : 1); attempt += 1)
      fits.checkFits(group.spec, withSet(amountsAt(group, row, first, attempt), set), task);
  });
};

const amountsAt = (group: Group, row: Row, first: Shape["resources"], attempt: number): Shape["resources"] => {
  try {
    const items = itemsOf(group.spec, group.items);
    return resourcesAt(group.spec, first, storedAt(items, row - group.first), isJsonItems(items), attempt);
  } catch (error) {
    return bad((error as Error).message);
  }
};

/** What people chose beyond `failed` or `all`. */
const isNarrow = ({ tasks, states, names, set }: RetryOptions): boolean =>
  tasks !== undefined || states !== undefined || names !== undefined || set !== undefined;

export const createRetry = (context: ServiceContext): Pick<Service, "retry"> => {
  const { engine, shelf, home, pilots, mayChange } = context;
  const { state } = engine;
  return {
    retry: async (id, options) => {
      mayChange();
      if (options.tasks !== undefined && (options.states !== undefined || options.names !== undefined))
        bad("tasks are named one by one, or chosen by state and name: not both");
      const set = options.set === undefined ? undefined : readRetrySet(options.set, inSet);
      await shelf.whole(id);
      bringBack(state, id, { restore: (summary) => readArchiveSync(home, summary.file) });
      const run = state.runs.get(id)!;
      if (!isFinishedRun(run))
        throw new SlipwayError("run-active", { run: id, detail: "only a run that has ended can be retried" });
      const chosen = [...chosenRows(run, options)];
      const rows = isNarrow(options) ? withCancelled(run, chosen) : undefined;
      if (rows !== undefined && set !== undefined) checkSet(context, run, rows, set);
      if (chosen.length > 0)
        engine.commit({
          type: "run.retried",
          at: engine.clock(),
          run: id,
          which: options.which,
          ...(rows === undefined ? {} : { rows }),
          ...(set === undefined ? {} : { set }),
        });
      // what still depends on a failure was cancelled again
      const blocked = chosen.filter((row) => isFinalTask(stateOf(run.table, row))).length;
      engine.schedulePass();
      pilots.expectWork();
      await engine.whenDurable();
      return { run: id, reopened: chosen.length - blocked, ...(blocked === 0 ? {} : { blocked }) };
    },
  };
};
