import { type Verdict, forEachEnded, isFree, resetLinks, verdictOn } from "./item-links.ts";
import { type Group, type Run, internReason, isFinishedRun, runState } from "./run.ts";
import type { Condition } from "./spec.ts";
import { type Moved, newMoved, noteRows } from "./moved.ts";
import { advance, advanceUntouched } from "./moves.ts";
import { type Settled, followRows, giveOut, newSettled } from "./settled-rows.ts";
import { isAhead } from "./held.ts";
import { Task, isFinalTask } from "./states.ts";
import type { Effects, State } from "./state.ts";
import { Flag, peek, stateOf, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * How the end of a task moves everything that waits for it. A dependency on a group is one barrier: groups count their
 * ended tasks, and their dependents are examined when the count is full, or at the first failure. Dependencies by item
 * are examined task by task (settled-rows.ts). Cascades run from a work list, so that a chain of 100,000 tasks needs no
 * stack.
 */

const groupEnded = (group: Group): boolean => group.done + group.failed + group.canceled === group.count;

/** Whether a dependency on a group is met, can never be met, or is still open. */
export const judge = (group: Group, on: Condition): Verdict =>
  verdictOn(on, groupEnded(group), group.failed + group.canceled > 0);

/** The same for a dependency on a whole run, once it has ended. */
export const judgeRun = (outcome: "DONE" | "FAILED" | "CANCELED", on: Condition): "met" | "never" =>
  on === "any" || (on === "ok") === (outcome === "DONE") ? "met" : "never";

/** Whole groups and runs keep the tasks of a group waiting no more: those go whose own predecessors have ended. */
const releaseFree = (state: State, run: Run, group: Group, effects: Effects): void => {
  let from = -1;
  const end = group.first + group.count;
  for (let row = group.first; row <= end; row += 1) {
    const goes = row < end && stateOf(run.table, row) === Task.NEW && isFree(run, group, row);
    if (goes) advance(state, run, row, Task.PENDING);
    if (goes && from < 0) from = row;
    if (goes || from < 0) continue;
    effects.ready(run, from, row - from);
    from = -1;
  }
};

/** All rows of a group become placeable; one that was handed ahead is with its agent already. */
const release = (state: State, run: Run, group: Group, effects: Effects): void => {
  if (group.links.length > 0) return releaseFree(state, run, group, effects);
  const { table } = run;
  let untouched = 0;
  let from = -1;
  const end = group.first + group.count;
  for (let row = group.first; row < end;) {
    const pageEnd = Math.min(end, (Math.floor(row / table.pageRows) + 1) * table.pageRows);
    const page = peek(table, row);
    if (page === undefined) {
      untouched += pageEnd - row;
      if (from < 0) from = row;
      row = pageEnd;
      continue;
    }
    for (; row < pageEnd; row += 1) {
      const slot = row % table.pageRows;
      if (page.state[slot] === Task.NEW && page.agent[slot] === 0) {
        advance(state, run, row, Task.PENDING);
        if (from < 0) from = row;
        continue;
      }
      if (from >= 0) effects.ready(run, from, row - from);
      from = -1;
      if (!isAhead(page, slot)) continue;
      advance(state, run, row, Task.SCHEDULING);
      effects.arrived(run, row, page.agent[slot]!);
    }
  }
  advanceUntouched(run, group, untouched);
  if (from >= 0) effects.ready(run, from, end - from);
};

/** Cancels the rows of a group that no agent has; marks the others and has agents stop them. Returns how many ended. */
export const cancelRows = (
  state: State,
  run: Run,
  group: Group,
  from: number,
  to: number,
  reason: string,
  flags: number,
  at: number,
  effects: Effects,
  moved: Moved,
): number => {
  const reasonId = internReason(run, reason);
  const { table } = run;
  let ended = 0;
  let first = -1;
  const tell = (until: number): void => {
    if (first < 0) return;
    effects.canceled(run, first, until - first);
    noteRows(moved, group, first, until - first);
    first = -1;
  };
  for (let row = from; row < to; row += 1) {
    const page = touch(table, row);
    const slot = row % table.pageRows;
    const now = page.state[slot]!;
    const running = page.agent[slot] !== 0 && (now >= Task.SCHEDULING || isAhead(page, slot));
    if (isFinalTask(now) || running) {
      if (running && !isFinalTask(now) && (page.flags[slot]! & Flag.CANCEL) === 0) {
        page.flags[slot]! |= Flag.CANCEL;
        page.reason[slot] = reasonId;
        effects.stop(page.agent[slot]!, run, row, page.attempt[slot]!);
      }
      tell(row);
      continue;
    }
    advance(state, run, row, Task.CANCELED);
    page.flags[slot]! |= flags;
    page.reason[slot] = reasonId;
    page.finished[slot] = at;
    ended += 1;
    if (first < 0) first = row;
  }
  tell(to);
  if ((flags & Flag.UNNEEDED) === 0) group.canceled += ended;
  else {
    // an unneeded handler is not a failure: whatever waits for it may proceed
    group.done += ended;
    run.unneeded += ended;
  }
  if (ended > 0) moved.groups.add(group);
  return ended;
};

/** Ends a group whose dependency on something else, by this name, can never be met. */
const giveUpGroup = (
  state: State,
  run: Run,
  group: Group,
  { name, on, failed }: { readonly name: string; readonly on: Condition; readonly failed: boolean },
  at: number,
  effects: Effects,
  moved: Moved,
): void => {
  group.waits = -1;
  const end = group.first + group.count;
  const [reason, flags] =
    on === "failed"
      ? [`not needed: ${name} did not fail`, Flag.UNNEEDED]
      : [`${name} ${failed ? "failed" : "was cancelled"}`, 0];
  cancelRows(state, run, group, group.first, end, reason, flags, at, effects, moved);
};

/** Examines the groups that wait for all of this one. */
const examine = (state: State, run: Run, group: Group, at: number, effects: Effects, moved: Moved): void => {
  for (const { group: index, on, link } of group.dependents) {
    if (link !== undefined) continue;
    const waiting = run.groups[index]!;
    if (waiting.base !== Task.NEW || waiting.waits <= 0) continue;
    const verdict = judge(group, on);
    if (verdict === "open") continue;
    if (verdict === "met") {
      // a barrier is met only once: at the full count, or never
      waiting.waits -= 1;
      if (waiting.waits === 0) release(state, run, waiting, effects);
      continue;
    }
    giveUpGroup(state, run, waiting, { name: group.spec.name, on, failed: group.failed > 0 }, at, effects, moved);
  }
};

/** What of the tasks that wait for these, one by one, can never run. */
const giveUpRows = (state: State, run: Run, { never }: Settled, at: number, effects: Effects, moved: Moved): void => {
  for (const { link, from, count, failed } of never.splice(0)) {
    const { name } = run.groups[link.before]!.spec;
    const which = link.match === "same" ? "this item" : `this ${link.match.by}`;
    const [reason, flags] =
      link.on === "failed"
        ? [`not needed: ${name} did not fail for ${which}`, Flag.UNNEEDED]
        : [`${name} ${failed ? "failed" : "was cancelled"} for ${which}`, 0];
    cancelRows(state, run, run.groups[link.after]!, from, from + count, reason, flags, at, effects, moved);
  }
};

/** Examines everything that waits for what has moved, and continues from there. */
export const cascade = (state: State, run: Run, moved: Moved, at: number, effects: Effects): void => {
  const { rows, groups } = moved;
  const settled = newSettled();
  const work: Group[] = [];
  for (;;) {
    while (rows.length > 0) {
      followRows(state, run, rows.splice(0), settled, effects);
      giveUpRows(state, run, settled, at, effects, moved);
    }
    work.push(...groups);
    groups.clear();
    const group = work.pop();
    if (group === undefined) break;
    examine(state, run, group, at, effects, moved);
  }
  giveOut(run, settled, effects);
  finishIfEnded(state, run, at, effects);
};

const finishIfEnded = (state: State, run: Run, at: number, effects: Effects): void => {
  const ended = run.counts[Task.DONE]! + run.counts[Task.CANCELED]! + run.counts[Task.FAILED]!;
  if (ended < run.total || isFinishedRun(run)) return;
  run.finished = at;
  state.live.delete(run);
  effects.finished(run);
  const outcome = runState(run) as "DONE" | "FAILED" | "CANCELED";
  const dependents = state.runDependents.get(run.id);
  state.runDependents.delete(run.id);
  for (const { run: id, group, on } of dependents ?? []) {
    const waiting = state.runs.get(id);
    if (waiting !== undefined && !isFinishedRun(waiting))
      settleRunDependency(state, waiting, waiting.groups[group]!, run.id, outcome, on, at, effects);
  }
};

/** Applies the outcome of an earlier run to a group that waited for it. */
export const settleRunDependency = (
  state: State,
  run: Run,
  group: Group,
  other: number,
  outcome: "DONE" | "FAILED" | "CANCELED",
  on: Condition,
  at: number,
  effects: Effects,
): void => {
  if (group.base !== Task.NEW || group.waits <= 0) return;
  if (judgeRun(outcome, on) === "met") {
    group.waits -= 1;
    if (group.waits === 0) release(state, run, group, effects);
    return;
  }
  const moved = newMoved();
  giveUpGroup(state, run, group, { name: `run ${other}`, on, failed: outcome === "FAILED" }, at, effects, moved);
  if (moved.groups.size > 0) cascade(state, run, moved, at, effects);
};

/** Ends a task for good, and notes whom that may move. */
export const endTask = (
  state: State,
  run: Run,
  group: Group,
  row: Row,
  to: number,
  at: number,
  effects: Effects,
  moved: Moved,
): void => {
  if (!advance(state, run, row, to)) return;
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  if (page.finished[slot] === 0) page.finished[slot] = at;
  effects.ended(run, row);
  if (to === Task.DONE) group.done += 1;
  else if (to === Task.FAILED) group.failed += 1;
  else group.canceled += 1;
  noteRows(moved, group, row, 1);
  if (groupEnded(group) || to !== Task.DONE) moved.groups.add(group);
};

/** How an earlier run ended, or undefined while it has not. */
export const outcomeOf = (state: State, id: number): "DONE" | "FAILED" | "CANCELED" | undefined => {
  const run = state.runs.get(id);
  if (run !== undefined) return isFinishedRun(run) ? (runState(run) as "DONE" | "FAILED" | "CANCELED") : undefined;
  const summary = state.archived.get(id);
  if (summary === undefined) return undefined;
  if ((summary.counts[Task.FAILED] ?? 0) > 0) return "FAILED";
  return (summary.counts[Task.CANCELED] ?? 0) > summary.unneeded ? "CANCELED" : "DONE";
};

/** A reopened run waits again: what it waited for before it ended would otherwise count twice. */
const unlink = (state: State, run: Run): void => {
  for (const group of run.groups)
    for (const dependency of group.spec.after) {
      const list = "run" in dependency ? state.runDependents.get(dependency.run) : undefined;
      if (list === undefined || !("run" in dependency)) continue;
      const others = list.filter((each) => each.run !== run.id);
      if (others.length > 0) state.runDependents.set(dependency.run, others);
      else state.runDependents.delete(dependency.run);
    }
};

/** Groups without open dependencies start; dependencies on what has ended, in this run or another, are settled. */
export const openRun = (state: State, run: Run, at: number, effects: Effects): void => {
  unlink(state, run);
  resetLinks(run);
  const moved = newMoved();
  for (const group of run.groups) {
    const bad = group.failed + group.canceled;
    // an empty group ends at once; after a retry, groups whose tasks are all done have ended too, and what waits for one
    // that still holds failures waits in vain
    if (groupEnded(group) || bad > 0) moved.groups.add(group);
    if (group.followers.length > 0 && group.done + bad > 0)
      forEachEnded(run, group, (from, count) => noteRows(moved, group, from, count));
  }
  for (const group of run.groups) {
    if (group.base !== Task.NEW) continue;
    if (group.waits === 0) {
      if (group.links.length === 0) release(state, run, group, effects);
      continue;
    }
    for (const dependency of group.spec.after) {
      if (!("run" in dependency)) continue;
      const outcome = outcomeOf(state, dependency.run);
      if (outcome === undefined) {
        const list = state.runDependents.get(dependency.run) ?? [];
        list.push({ run: run.id, group: group.index, on: dependency.on });
        state.runDependents.set(dependency.run, list);
      } else settleRunDependency(state, run, group, dependency.run, outcome, dependency.on, at, effects);
    }
  }
  cascade(state, run, moved, at, effects);
};
