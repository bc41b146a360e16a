import { type Group, type Run, internReason, isFinishedRun, runState } from "./run.ts";
import type { Condition } from "./spec.ts";
import { advance, advanceUntouched } from "./moves.ts";
import { isAhead } from "./held.ts";
import { Task, isFinalTask } from "./states.ts";
import type { Effects, State } from "./state.ts";
import { Flag, peek, touch } from "./table.ts";
import type { Row } from "./ids.ts";

/**
 * How the end of a task moves everything that waits for it. A dependency on a group is one barrier: groups count their
 * ended tasks, and their dependents are examined when the count is full, or at the first failure. Cascades run from a
 * work list, so that a chain of 100,000 tasks needs no stack.
 */

const groupEnded = (group: Group): boolean => group.done + group.failed + group.canceled === group.count;

/** Whether a dependency on a group is met, can never be met, or is still open. */
export const judge = (group: Group, on: Condition): "met" | "never" | "open" => {
  const bad = group.failed + group.canceled > 0;
  if (on === "ok") return bad ? "never" : groupEnded(group) ? "met" : "open";
  if (!groupEnded(group)) return "open";
  return on === "any" || bad ? "met" : "never";
};

/** The same for a dependency on a whole run, once it has ended. */
export const judgeRun = (outcome: "DONE" | "FAILED" | "CANCELED", on: Condition): "met" | "never" =>
  on === "any" || (on === "ok") === (outcome === "DONE") ? "met" : "never";

/** All rows of a group become placeable; one that was handed ahead is with its agent already. */
const release = (state: State, run: Run, group: Group, effects: Effects): void => {
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
): number => {
  const reasonId = internReason(run, reason);
  const { table } = run;
  let ended = 0;
  let first = -1;
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
      if (first >= 0) effects.canceled(run, first, row - first);
      first = -1;
      continue;
    }
    advance(state, run, row, Task.CANCELED);
    page.flags[slot]! |= flags;
    page.reason[slot] = reasonId;
    page.finished[slot] = at;
    ended += 1;
    if (first < 0) first = row;
  }
  if (first >= 0) effects.canceled(run, first, to - first);
  if ((flags & Flag.UNNEEDED) === 0) group.canceled += ended;
  else {
    // an unneeded handler is not a failure: whatever waits for it may proceed
    group.done += ended;
    run.unneeded += ended;
  }
  return ended;
};

const cancelGroup = (
  state: State,
  run: Run,
  group: Group,
  reason: string,
  flags: number,
  at: number,
  effects: Effects,
): number => cancelRows(state, run, group, group.first, group.first + group.count, reason, flags, at, effects);

/** Examines every group that depends on one of these, and continues from there. */
export const cascade = (state: State, run: Run, start: readonly Group[], at: number, effects: Effects): void => {
  const work = [...start];
  for (let group = work.pop(); group !== undefined; group = work.pop()) {
    for (const { group: index, on } of group.dependents) {
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
      waiting.waits = -1;
      const ended =
        on === "failed"
          ? cancelGroup(state, run, waiting, `not needed: ${group.spec.name} did not fail`, Flag.UNNEEDED, at, effects)
          : cancelGroup(
              state,
              run,
              waiting,
              `${group.spec.name} ${group.failed > 0 ? "failed" : "was cancelled"}`,
              0,
              at,
              effects,
            );
      if (ended > 0) work.push(waiting);
    }
  }
  finishIfEnded(state, run, at, effects);
};

const finishIfEnded = (state: State, run: Run, at: number, effects: Effects): void => {
  const ended = run.counts[Task.DONE]! + run.counts[Task.CANCELED]! + run.counts[Task.FAILED]!;
  if (ended < run.total || isFinishedRun(run)) return;
  run.finished = at;
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
  group.waits = -1;
  const ended =
    on === "failed"
      ? cancelGroup(state, run, group, `not needed: run ${other} did not fail`, Flag.UNNEEDED, at, effects)
      : cancelGroup(
          state,
          run,
          group,
          `run ${other} ${outcome === "FAILED" ? "failed" : "was cancelled"}`,
          0,
          at,
          effects,
        );
  if (ended > 0) cascade(state, run, [group], at, effects);
};

/** Ends a task for good. Returns the group if something may depend on what just happened, else undefined. */
export const endTask = (
  state: State,
  run: Run,
  group: Group,
  row: Row,
  to: number,
  at: number,
  effects: Effects,
): Group | undefined => {
  if (!advance(state, run, row, to)) return undefined;
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  if (page.finished[slot] === 0) page.finished[slot] = at;
  effects.ended(run, row);
  if (to === Task.DONE) group.done += 1;
  else if (to === Task.FAILED) group.failed += 1;
  else group.canceled += 1;
  return groupEnded(group) || to !== Task.DONE ? group : undefined;
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
  // an empty group ends at once; after a retry, groups whose tasks are all done have ended too, and what waits for one
  // that still holds failures waits in vain
  const ended = run.groups.filter((group) => groupEnded(group) || group.failed + group.canceled > 0);
  for (const group of run.groups) {
    if (group.base !== Task.NEW) continue;
    if (group.waits === 0) {
      release(state, run, group, effects);
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
  cascade(state, run, ended, at, effects);
};
