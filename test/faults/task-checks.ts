import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { type Submitted, groupsOf, linkNumber } from "./workload.ts";
import type { World } from "./world.ts";

/** What must hold of one task and of one run, given what was asked for and what was done to agents. */

const FINAL = new Set(["DONE", "FAILED", "CANCELED"]);
const OWN_FAILURE = 7;
/** The first three and the last five attempts of a task are always shown; of more, those between may be dropped. */
const ALWAYS_SHOWN = 8;
/** How far the times of two agents may be apart. */
const CLOCKS_MS = 2000;

export interface Execution {
  readonly attempt: number;
  /** First letters of the agent's uuid. */
  readonly agent: string;
}

/** What a run's tasks are judged by. */
export interface Facts {
  readonly one: Submitted;
  /** Whether all tasks of the first group succeeded. */
  readonly firstDone: boolean;
  /** The first of the tasks in a row that did not succeed; Infinity if all did. */
  readonly brokenLink: number;
  /** Whether the condition it waited for was met; undefined: that changed meanwhile. */
  readonly begun: boolean | undefined;
  /** The lowest `limits.losses` that was ever in force. */
  readonly fewestLosses: number;
}

const describe = (task: TaskView, executions: readonly Execution[]): string =>
  `attempts ${JSON.stringify(task.attempts.map(({ n, agent, pilot, exitCode, lost, reason }) => ({ n, agent, pilot, exitCode, lost, reason })))}, ` +
  `executions ${JSON.stringify(executions)}`;

/** The group of a task: groups follow each other. */
const groupAt = (one: Submitted, index: number): string => {
  let end = 0;
  for (const { name, tasks } of groupsOf(one.plan)) if (index < (end += tasks)) return name;
  return "none";
};

/** Whether it fails by itself. */
const mayFail = (one: Submitted, index: number): boolean => {
  const { every, kills } = one.plan;
  if (every === 0 || kills !== undefined || index % every !== 0) return false;
  const group = groupAt(one, index);
  return group === "first" || linkNumber(group) !== undefined;
};

/** It failed because it was lost too often, which is not a failure of its own. */
export const isGivenUp = (task: TaskView, fewestLosses: number): boolean => {
  const last = task.attempts.at(-1);
  if (task.state !== "FAILED" || last === undefined || last.exitCode === OWN_FAILURE) return false;
  const lost = task.attempts.filter((attempt) => attempt.lost || attempt === last).length;
  return lost > fewestLosses || task.attempts.length >= ALWAYS_SHOWN;
};

/** Compares the attempts of a task with what was executed, and each loss with what was done to agents. */
const checkAttempts = (world: World, { one }: Facts, task: TaskView, executions: readonly Execution[]): string[] => {
  const problems: string[] = [];
  const { plan } = one;
  const { attempts } = task;
  const index = Number(task.id.split(".")[1]);
  const fails = mayFail(one, index);
  const some = attempts.length >= ALWAYS_SHOWN;
  const counted = new Map<number, number>();
  for (const { attempt } of executions) counted.set(attempt, (counted.get(attempt) ?? 0) + 1);
  for (const [attempt, count] of counted) {
    if (count > 1) problems.push(`attempt ${attempt} was executed ${count} times`);
    if (!some && !attempts.some(({ n }) => n === attempt))
      problems.push(`attempt ${attempt} was executed and is not recorded`);
  }
  attempts.forEach(({ n, lost, exitCode, pilot }, i) => {
    if (some ? n <= (attempts[i - 1]?.n ?? 0) : n !== i + 1)
      problems.push(`attempt ${n} is recorded as number ${i + 1}`);
    const ownFailure = !lost && exitCode === OWN_FAILURE && fails && n <= plan.times;
    // only retry follows an attempt that was cancelled or given up or, with --all, one that succeeded
    const reopened = one.retried > 0 && (one.canceled || one.retriedAll || exitCode !== 0);
    if (i < attempts.length - 1 && !lost && !ownFailure && !reopened)
      problems.push(`attempt ${n} was followed by another without having failed or been lost`);
    if (!lost) return;
    if (exitCode === 0) problems.push(`attempt ${n} ended well and counts as lost`);
    const by = executions.find(({ attempt }) => attempt === n)?.agent;
    if (by !== undefined && !world.wasEnded(by))
      problems.push(`attempt ${n} was lost, but its agent ${by} was never ended`);
    if (pilot !== null && !world.wasEnded(Number(pilot)))
      problems.push(`attempt ${n} was lost, but its pilot ${pilot} was never ended`);
  });
  const last = attempts.at(-1);
  if (task.state === "DONE") {
    if (last?.exitCode !== 0 || last.lost) problems.push("is DONE without a last attempt that went well");
    if (last !== undefined && !counted.has(last.n)) problems.push("is DONE and its last attempt was never executed");
  }
  return problems;
};

/** Compares the end of a task with what the run's file says. */
const checkEnd = (facts: Facts, task: TaskView): string[] => {
  const { one, firstDone, begun } = facts;
  const { plan } = one;
  const { state } = task;
  if (!FINAL.has(state)) return [`is ${state} in the end`];
  // nobody knows how far it had come
  if (one.canceled) return [];
  if (state === "CANCELED" && begun !== true) return [];
  if (begun === false) return [`is ${state}, though what its run waited for never came about`];
  const index = Number(task.id.split(".")[1]);
  const group = groupAt(one, index);
  if (group === "behind" && !firstDone) return state === "CANCELED" ? [] : [`is ${state} behind a failure`];
  if (group === "alarm" && firstDone) {
    // it was needed before the retry that succeeded
    if (state === "CANCELED" || one.retried > 0) return [];
    return [`is ${state}, a handler that was not needed`];
  }
  const link = linkNumber(group);
  if (link !== undefined && link > facts.brokenLink)
    return state === "CANCELED" ? [] : [`is ${state} behind a link that is broken`];
  if (state === "DONE" || isGivenUp(task, facts.fewestLosses)) return [];
  if (!mayFail(one, index) || state !== "FAILED") return [`is ${state}, not DONE`];
  const failures = task.attempts.filter(({ lost, exitCode }) => !lost && exitCode === OWN_FAILURE).length;
  const series = failures / (plan.retries + 1);
  // after a retry, too many losses may have interrupted a series of failures
  const right = one.retried === 0 ? series === 1 : series > 0 && series <= one.retried + 1;
  return right || task.attempts.length >= ALWAYS_SHOWN
    ? []
    : [`FAILED after ${failures} failures with ${plan.retries} retries`];
};

/** The first of the tasks in a row that did not succeed. */
export const brokenLinkOf = (one: Submitted, tasks: readonly TaskView[]): number => {
  for (const [index, { state }] of tasks.entries()) {
    const link = linkNumber(groupAt(one, index));
    if (link !== undefined && state !== "DONE") return link;
  }
  return Infinity;
};

/** No task in a row was ever executed unless the one before it was, and each began when that one had ended. */
export const checkRow = (
  one: Submitted,
  tasks: readonly TaskView[],
  executions: ReadonlyMap<string, readonly Execution[]>,
): string[] => {
  const problems: string[] = [];
  for (const [index, task] of tasks.entries()) {
    const link = linkNumber(groupAt(one, index));
    if (link === undefined || link === 0) continue;
    const before = tasks[index - 1]!;
    if (executions.has(task.id) && !executions.has(before.id))
      problems.push(`task ${task.id} was executed and ${before.id}, which it waits for, never was`);
    const [began, ended] = [task.attempts.at(-1)?.started, before.attempts.at(-1)?.finished];
    if (task.state !== "DONE" || before.state !== "DONE" || one.retried > 0) continue;
    // a millisecond and a rounding error between the clocks of two agents
    if (began == null || ended == null || Date.parse(began) < Date.parse(ended) - CLOCKS_MS)
      problems.push(`task ${task.id} began at ${began}, and ${before.id}, which it waits for, ended at ${ended}`);
  }
  return problems;
};

export const checkTask = (world: World, facts: Facts, task: TaskView, executions: readonly Execution[]): string[] =>
  [...checkAttempts(world, facts, task, executions), ...checkEnd(facts, task)].map(
    (problem) => `task ${task.id} ${problem}: ${describe(task, executions)}`,
  );

export const checkRun = (run: RunView, tasks: readonly TaskView[], { one, fewestLosses }: Facts): string[] => {
  const problems: string[] = [];
  const counts: Record<string, number> = {};
  for (const { state } of tasks) counts[state] = (counts[state] ?? 0) + 1;
  if (JSON.stringify(Object.entries(counts).toSorted()) !== JSON.stringify(Object.entries(run.counts).toSorted()))
    problems.push(`run ${run.id} counts ${JSON.stringify(run.counts)}, its tasks ${JSON.stringify(counts)}`);
  if (tasks.some(({ attempts }) => attempts.length >= ALWAYS_SHOWN)) return problems;
  const lost = tasks.reduce(
    (sum, task) =>
      sum + task.attempts.filter((attempt) => attempt.lost).length + (isGivenUp(task, fewestLosses) ? 1 : 0),
    0,
  );
  // a task that was given up and then retried has an attempt that is not called lost
  if (run.losses > lost && one.retried === 0)
    problems.push(`run ${run.id} counts ${run.losses} losses, its attempts ${lost}`);
  const retried = tasks.reduce(
    (sum, { attempts }) => sum + attempts.slice(0, -1).filter((attempt) => !attempt.lost).length,
    0,
  );
  // a retry that was cancelled before it began has no attempt, and those of `slipway retry` do not count
  if (run.retries !== retried && !one.canceled && one.retried === 0)
    problems.push(`run ${run.id} counts ${run.retries} retries, its attempts ${retried}`);
  return problems;
};
