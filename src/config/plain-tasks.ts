import type { RunInput, TaskInput } from "./run-schema.ts";
import { MANAGER_KEYS } from "./task-job-keys.ts";

/**
 * Most tasks of a large graph say a few keys, with values that need no conversion. A look at these tells that the schema
 * accepts such a task as it stands; the schema itself has over a hundred keys and tries each of them. Everything else goes
 * through the schema, and so does all that is wrong: it alone says why.
 */

type IsPlain = (value: unknown) => boolean;

const isText: IsPlain = (value) => typeof value === "string";
const isFlag: IsPlain = (value) => typeof value === "boolean";
const isAmount: IsPlain = (value) => typeof value === "string" || Number.isFinite(value);
const isWhole: IsPlain = (value) => Number.isSafeInteger(value);
const listOf =
  (is: IsPlain): IsPlain =>
  (value) => {
    if (!Array.isArray(value)) return false;
    for (let i = 0; i < value.length; i += 1) if (!is(value[i])) return false;
    return true;
  };
const [isTexts, isAmounts] = [listOf(isText), listOf(isAmount)];

export const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** A map in which each key is known, and its value plain. */
const isMapOf =
  (known: ReadonlyMap<string, IsPlain>): IsPlain =>
  (value) => {
    if (!isMap(value)) return false;
    for (const key in value) if (known.get(key)?.(value[key]) !== true) return false;
    return true;
  };

const EACH = new Map([
  ["array", isAmount],
  ...["lines", "json", "colsep"].map((key): [string, IsPlain] => [key, isText]),
]);

const PLAIN: Readonly<Record<string, IsPlain>> = {
  name: isText,
  run: (value) => typeof value === "string" || isTexts(value),
  after: (value) => isAmount(value) || isAmounts(value),
  each: isMapOf(EACH),
  executor: (value) => value === null || value === "null" || value === "process",
  via: (value) => value === "pilot" || value === "job",
  ...Object.fromEntries(["cpus", "gpus", "mem", "tmp", "cpus-per-rank", "gpus-per-rank"].map((key) => [key, isAmount])),
  ...Object.fromEntries(["time-limit", "time-request", "retry-delay"].map((key) => [key, isAmount])),
  ...Object.fromEntries(["ranks", "priority", "retries", "mem-retry"].map((key) => [key, isWhole])),
  ...Object.fromEntries(["append", "local", "pin"].map((key) => [key, isFlag])),
  ...Object.fromEntries(["cwd", "stdout", "stderr", "cluster", "queue", "backend"].map((key) => [key, isText])),
  ...Object.fromEntries(MANAGER_KEYS.map((key) => [key, isText])),
};
const isPlainTask = isMapOf(new Map(Object.entries(PLAIN)));

/** What the top of a run may say besides its tasks, to be plain. */
export const isPlainTop = isMapOf(
  new Map([
    ...["name", "cwd", "export"].map((key): [string, IsPlain] => [key, isText]),
    ["after", PLAIN["after"]!],
    ["max-fails", isWhole],
    ["force", isFlag],
  ]),
);

export const plainTask = (task: unknown): TaskInput | undefined => {
  if (!isMap(task) || task["run"] === undefined || !isPlainTask(task)) return undefined;
  return (task["executor"] === null ? { ...task, executor: "null" } : task) as TaskInput;
};

/** A run that says nothing but what is plain; undefined for any other. */
export const plainRun = (value: unknown): RunInput | undefined => {
  if (!isMap(value) || !Array.isArray(value["tasks"])) return undefined;
  const { tasks: given, ...top } = value;
  if (!isPlainTop(top)) return undefined;
  const tasks: TaskInput[] = [];
  for (const task of given as readonly unknown[]) {
    const accepted = plainTask(task);
    if (accepted === undefined) return undefined;
    tasks.push(accepted);
  }
  return { ...top, tasks };
};
