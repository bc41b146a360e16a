import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { KEPT_FIRST } from "../../src/core/past-attempts.ts";
import type { Driven } from "./drive.ts";
import { type Submitted, expectedTotal } from "./workload.ts";
import type { World } from "./world.ts";

/** What must hold after any schedule, whatever broke when. Returns what does not. */

const FINAL = new Set(["DONE", "FAILED", "CANCELED"]);
const OWN_FAILURE = 7;
const PAGE = 1000;

export interface Execution {
  readonly attempt: number;
  /** First letters of the agent's uuid. */
  readonly agent: string;
}

/** Executions by task, as the tasks themselves wrote them down. */
export const readExecutions = async (directory: string): Promise<Map<string, Execution[]>> => {
  const found = new Map<string, Execution[]>();
  for (const name of await readdir(directory)) {
    const lines = (await readFile(join(directory, name), "utf8")).split("\n").slice(0, -1);
    found.set(
      name,
      lines.map((line) => {
        const [task, attempt, token] = line.split(" ");
        if (task !== name) throw new Error(`the file of ${name} holds ${line}`);
        return { attempt: Number(attempt), agent: token?.split("-")[0] ?? "" };
      }),
    );
  }
  return found;
};

export const allTasks = async (world: World, run: number): Promise<TaskView[]> => {
  const all: TaskView[] = [];
  for (;;) {
    const page = await world.client.tasks(run, { offset: all.length, limit: PAGE });
    all.push(...page);
    if (page.length < PAGE) return all;
  }
};

const describe = (task: TaskView, executions: readonly Execution[]): string =>
  `attempts ${JSON.stringify(task.attempts.map(({ n, agent, pilot, exitCode, lost, reason }) => ({ n, agent, pilot, exitCode, lost, reason })))}, ` +
  `executions ${JSON.stringify(executions)}`;

/** Losses and executions against what was done to agents. */
const checkTask = (world: World, one: Submitted, task: TaskView, executions: readonly Execution[]): string[] => {
  const problems: string[] = [];
  const index = Number(task.id.split(".")[1]);
  const { plan } = one;
  const fails = plan.every > 0 && index < plan.tasks && index % plan.every === 0;
  if (!FINAL.has(task.state)) problems.push(`is ${task.state} in the end`);
  const { attempts, attemptsDropped: dropped } = task;
  /** Of many attempts those in the middle are not kept. */
  const isDropped = (n: number): boolean => n > KEPT_FIRST && n <= KEPT_FIRST + dropped;
  const counted = new Map<number, number>();
  for (const { attempt } of executions) counted.set(attempt, (counted.get(attempt) ?? 0) + 1);
  for (const [attempt, count] of counted) {
    if (count > 1) problems.push(`attempt ${attempt} was executed ${count} times`);
    if (!attempts.some(({ n }) => n === attempt) && !isDropped(attempt))
      problems.push(`attempt ${attempt} was executed and is not recorded`);
  }
  attempts.forEach(({ n, lost, exitCode, pilot }, i) => {
    if (n !== i + 1 + (i < KEPT_FIRST ? 0 : dropped)) problems.push(`attempt ${n} is recorded as number ${i + 1}`);
    const ownFailure = !lost && exitCode === OWN_FAILURE && fails && n <= plan.times;
    // a task that was cancelled and then retried has an attempt that ended as it was told
    if (i < attempts.length - 1 && !lost && !ownFailure && !(one.canceled && one.retried))
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
  const failures = attempts.filter(({ lost, exitCode }) => !lost && exitCode === OWN_FAILURE).length;
  switch (task.state) {
    case "DONE":
      if (last?.exitCode !== 0 || last.lost) problems.push("is DONE without a last attempt that went well");
      if (last !== undefined && !counted.has(last.n)) problems.push("is DONE and its last attempt was never executed");
      break;
    case "FAILED":
      if (dropped === 0 && failures !== (plan.retries + 1) * (one.retried ? 2 : 1) && !(one.canceled && one.retried))
        problems.push(`FAILED after ${failures} failures with ${plan.retries} retries`);
      break;
    case "CANCELED":
      if (!one.canceled && (index < plan.tasks || plan.times <= plan.retries))
        problems.push("is CANCELED without a cause");
      break;
    default:
  }
  if (!one.canceled && !fails && index < plan.tasks && task.state !== "DONE")
    problems.push(`is ${task.state}, not DONE`);
  return problems.map((problem) => `task ${task.id} ${problem}: ${describe(task, executions)}`);
};

const checkRun = (run: RunView, tasks: readonly TaskView[], one: Submitted): string[] => {
  const problems: string[] = [];
  const counts: Record<string, number> = {};
  for (const { state } of tasks) counts[state] = (counts[state] ?? 0) + 1;
  if (JSON.stringify(Object.entries(counts).toSorted()) !== JSON.stringify(Object.entries(run.counts).toSorted()))
    problems.push(`run ${run.id} counts ${JSON.stringify(run.counts)}, its tasks ${JSON.stringify(counts)}`);
  const lost = tasks.reduce((sum, { attempts }) => sum + attempts.filter((attempt) => attempt.lost).length, 0);
  const dropped = tasks.reduce((sum, { attemptsDropped }) => sum + attemptsDropped, 0);
  if (run.losses > lost + dropped) problems.push(`run ${run.id} counts ${run.losses} losses, its attempts ${lost}`);
  const retried = tasks.reduce(
    (sum, { attempts }) => sum + attempts.slice(0, -1).filter((attempt) => !attempt.lost).length,
    0,
  );
  // a retry that was cancelled before it began has no attempt, and what `slipway retry` reopens is none of them
  if (run.retries !== retried && dropped === 0 && !one.canceled && !one.retried)
    problems.push(`run ${run.id} counts ${run.retries} retries, its attempts ${retried}`);
  return problems;
};

export const checkAll = async (world: World, { submitted, bulks }: Driven): Promise<string[]> => {
  const problems: string[] = [];
  const runs = await world.client.runs({ limit: 1000 });
  const executions = await readExecutions(world.ran);
  const seen = new Set<string>();
  for (const one of submitted) {
    const named = runs.filter(({ name }) => name === one.name);
    if (one.id === undefined || !named.some(({ id }) => id === one.id))
      problems.push(`${one.name} was acknowledged as run ${one.id} and is not there`);
    if (named.length > (one.maybeTwice ? 2 : 1)) problems.push(`${one.name} is there ${named.length} times`);
    for (const run of named) {
      if (run.total !== expectedTotal(one.plan))
        problems.push(`run ${run.id} has ${run.total} tasks of ${expectedTotal(one.plan)}`);
      const tasks = await allTasks(world, run.id);
      problems.push(...checkRun(await world.client.run(run.id), tasks, one));
      for (const task of tasks) {
        seen.add(task.id);
        problems.push(...checkTask(world, one, task, executions.get(task.id) ?? []));
      }
    }
  }
  for (const task of executions.keys()) if (!seen.has(task)) problems.push(`task ${task} was executed and is unknown`);
  for (const { name, lines, acknowledged } of bulks) {
    const named = runs.filter((run) => run.name === name);
    if (acknowledged && named.length === 0) problems.push(`${name} was acknowledged and is not there`);
    for (const run of named)
      if (run.total !== lines || run.counts["DONE"] !== lines)
        problems.push(`${name} has ${JSON.stringify(run.counts)} of ${run.total} tasks, ${lines} lines were submitted`);
  }
  const known = new Set([...submitted, ...bulks].map(({ name }) => name));
  for (const { id, name } of runs) if (!known.has(name)) problems.push(`run ${id} (${name}) was never submitted`);
  return problems;
};

/** Everything that can be asked about all tasks, to be compared after a restart. */
export const describeAll = async (world: World): Promise<Map<string, string>> => {
  const all = new Map<string, string>();
  for (const run of await world.client.runs({ limit: 1000 })) {
    all.set(`run ${run.id}`, JSON.stringify(run));
    if (run.name.startsWith("work-"))
      for (const task of await allTasks(world, run.id)) all.set(`task ${task.id}`, JSON.stringify(task));
  }
  return all;
};
