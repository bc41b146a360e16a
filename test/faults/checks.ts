import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import type { Driven } from "./drive.ts";
import { DEFAULT_LOSSES } from "./schedule.ts";
import { type Execution, brokenLinkOf, checkRow, checkRun, checkTask } from "./task-checks.ts";
import { type Submitted, expectedTotal } from "./workload.ts";
import type { World } from "./world.ts";

/** What must hold after any schedule, whatever broke when. Returns what does not. */

const PAGE = 1000;

/** Executions by task, as the tasks themselves recorded them. */
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

/** Agents that went down with a task that had to kill them. */
const noteKillers = (world: World, submitted: readonly Submitted[], executions: ReadonlyMap<string, Execution[]>) => {
  for (const { plan, id } of submitted) {
    if (plan.kills === undefined) continue;
    for (let row = 0; row < plan.tasks; row += plan.every)
      for (const { attempt, agent } of executions.get(`${id}.${row}`) ?? [])
        if (attempt <= plan.times) world.tookDown(agent);
  }
};

/** Whether the condition on an earlier run was met; undefined if that run was reopened after its end. */
const cameAbout = (one: Submitted, runs: readonly RunView[]): boolean | undefined => {
  const { after } = one;
  if (after === undefined) return true;
  const { on } = one.plan.after!;
  if (on === "any") return true;
  if (after.canceled || after.retried > 0) return undefined;
  const done = runs.find(({ id }) => id === after.id)?.state === "DONE";
  return on === "ok" ? done : !done;
};

export const checkAll = async (world: World, { submitted, bulks, limits }: Driven): Promise<string[]> => {
  const problems: string[] = [];
  const runs = await world.client.runs({ limit: 1000 });
  const executions = await readExecutions(world.ran);
  const seen = new Set<string>();
  noteKillers(world, submitted, executions);
  for (const one of submitted) {
    const named = runs.filter(({ name }) => name === one.name);
    if (one.id === undefined || !named.some(({ id }) => id === one.id))
      problems.push(`${one.name} was acknowledged as run ${one.id} and is not there`);
    if (named.length > (one.maybeTwice ? 2 : 1)) problems.push(`${one.name} is there ${named.length} times`);
    for (const run of named) {
      if (run.total !== expectedTotal(one.plan))
        problems.push(`run ${run.id} has ${run.total} tasks of ${expectedTotal(one.plan)}`);
      const tasks = await allTasks(world, run.id);
      const firstDone = tasks.slice(0, one.plan.tasks).every(({ state }) => state === "DONE");
      const brokenLink = brokenLinkOf(one, tasks);
      const facts = { one, firstDone, brokenLink, begun: cameAbout(one, runs), fewestLosses: Math.min(...limits) };
      problems.push(...checkRow(one, tasks, executions));
      problems.push(...checkRun(await world.client.run(run.id), tasks, facts));
      for (const task of tasks) {
        seen.add(task.id);
        problems.push(...checkTask(world, facts, task, executions.get(task.id) ?? []));
      }
    }
  }
  for (const task of executions.keys()) if (!seen.has(task)) problems.push(`task ${task} was executed and is unknown`);
  for (const { name, lines, acknowledged } of bulks) {
    const named = runs.filter((run) => run.name === name);
    if (acknowledged && named.length === 0) problems.push(`${name} was acknowledged and is not there`);
    if (named.length > 1) problems.push(`${name} was submitted once and is there ${named.length} times`);
    for (const run of named)
      // where few losses are allowed, tasks may be given up
      if (
        run.total !== lines ||
        (run.counts["DONE"] ?? 0) + (Math.min(...limits) < DEFAULT_LOSSES ? (run.counts["FAILED"] ?? 0) : 0) !== lines
      )
        problems.push(`${name} has ${JSON.stringify(run.counts)} of ${run.total} tasks, ${lines} lines were submitted`);
  }
  const known = new Set([...submitted, ...bulks].map(({ name }) => name));
  for (const { id, name } of runs) if (!known.has(name)) problems.push(`run ${id} (${name}) was never submitted`);
  return problems;
};

/** Everything that can be asked about all tasks, to compare after a restart. */
export const describeAll = async (world: World): Promise<Map<string, string>> =>
  until("the jobs of tasks that have ended to end too", async () => {
    const all = new Map<string, string>();
    for (const run of await world.client.runs({ limit: 1000 })) {
      all.set(`run ${run.id}`, JSON.stringify(run));
      if (!run.name.startsWith("work-")) continue;
      for (const task of await allTasks(world, run.id)) {
        // a job ends a moment after its task
        if ((task.job ?? { state: "ended" }).state !== "ended") return undefined;
        all.set(`task ${task.id}`, JSON.stringify(task));
      }
    }
    return all;
  });

/**
 * Errors that the server did not foresee when asked something unusual, from its log. Compactions may fail with the
 * disk, and a client that is gone gets no answer.
 */
export const unforeseen = async (world: World): Promise<string[]> =>
  (await readFile(join(world.home, "logs", "server.log"), "utf8").catch(() => ""))
    .split("\n")
    .filter((line) => /(GET|POST|DELETE) \/api\/v1\/(?!server\/compact)\S*: (?!Error: aborted)/.test(line))
    .map((line) => `a request was answered with 500: ${line}`);
