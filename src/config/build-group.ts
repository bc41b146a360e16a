import { isFormula } from "../core/amounts.ts";
import { checkItem } from "../core/items.ts";
import { parseDuration } from "../core/quantities.ts";
import type { Command, Dependency, GroupSpec } from "../core/spec.ts";
import type { DefaultsInput, TaskInput } from "./run-schema.ts";
import { type Entry, valueOf, wholeNumber } from "./task-entry.ts";
import { readFiles } from "./task-files.ts";
import { readJob } from "./task-job-keys.ts";
import { readRanks } from "./task-ranks.ts";
import type { Problems } from "./problems.ts";
import { matrixItem, telling } from "../core/matrix.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";
import { readEach, type ItemsInput, type TaskItems } from "./task-items.ts";
import { AUTO, collectAmounts, dependsOnItem, readResources, type TaskResources } from "./task-resources.ts";
import { checkName, checkPath, checkTemplate, checkText, type ItemKind } from "./text-rules.ts";

/** Keys of cli.md that do nothing yet. Refused, so that nobody believes they took effect. */
const LATER: Readonly<Record<string, string>> = {
  in: "file staging",
  out: "file staging",
};

const MAX_RETRIES = 1000;
const MAX_MEM_RETRIES = 20;
/** A learned amount is sometimes too small, and at first nobody knows by how much. */
const AUTO_MEM_RETRIES = 4;
const MAX_PRIORITY = 1_000_000;

/** An object without the keys that have no value. */
export const without = <T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T => {
  const kept: Partial<T> = {};
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept as T;
};

/** Refuses what belongs to later versions, so that nothing is ignored silently. */
export const refuseLater = (source: Source, entry: DefaultsInput, path: Path): void => {
  for (const key in entry) {
    const what = LATER[key];
    if (what !== undefined) {
      badValue(source, [...path, key], `not supported yet: ${what} will come with a later version`, "Remove this key.");
    }
  }
};

const readCommand = (source: Source, path: Path, run: TaskInput["run"], items: ItemKind): Command => {
  if (typeof run === "string") {
    if (run.trim() === "") badValue(source, path, "the command is empty", "Write what to run.");
    checkTemplate(source, path, run, items, { shell: true });
    return run;
  }
  if (run.length === 0 || run[0] === "") badValue(source, path, "the command is empty", "Write what to run.");
  for (const [i, argument] of run.entries()) checkTemplate(source, [...path, i], argument, items);
  return run;
};

export const checkEnvName = (source: Source, path: Path, name: string): void => {
  checkText(source, path, name);
  if (name === "" || name.includes("=") || name === "__proto__") {
    badValue(
      source,
      path,
      `'${name.slice(0, 60)}' is not a valid variable name`,
      "A name must not be empty or contain =.",
    );
  }
};

const readEnv = (source: Source, entry: Entry, index: number, items: ItemKind): Record<string, string> | undefined => {
  const { task, defaults } = entry;
  if (task.env === undefined && defaults.env === undefined) return undefined;
  for (const [values, path] of [
    [defaults.env, ["defaults", "env"]],
    [task.env, ["tasks", index, "env"]],
  ] as const) {
    for (const [name, value] of Object.entries(values ?? {})) {
      checkEnvName(source, [...path, name], name);
      checkTemplate(source, [...path, name], value, items);
    }
  }
  return { ...defaults.env, ...task.env };
};

const duration = (
  source: Source,
  entry: Entry,
  key: "time-limit" | "time-request" | "retry-delay",
): number | undefined => {
  const value = valueOf(entry, key);
  if (value === undefined || (key === "time-request" && value === AUTO)) return undefined;
  const seconds = parsed(source, entry.path(key), () => parseDuration(value));
  return key === "time-limit" && seconds === 0 ? badValue(source, entry.path(key), "must be more than 0") : seconds;
};

/** With `mem-retry`, mem must be an amount that can grow: a formula says itself what later attempts get. */
const readMemRetry = (source: Source, entry: Entry, amounts: TaskResources): number | undefined => {
  const path = entry.path("mem-retry");
  const tries =
    wholeNumber(source, path, valueOf(entry, "mem-retry"), 0, MAX_MEM_RETRIES) ??
    (amounts.autoMem === true ? AUTO_MEM_RETRIES : undefined);
  if (tries === undefined || tries === 0) return undefined;
  const { mem } = { ...amounts.itemResources, ...amounts.attemptResources };
  if (mem !== undefined && isFormula(mem))
    badValue(source, path, `cannot go with mem: ${mem}, which is a formula`, "Keep one of them.");
  if (mem === undefined && amounts.resources["mem"] === undefined && amounts.autoMem !== true)
    badValue(source, path, "needs mem: a task without it is never killed for memory", "Add mem, or remove this key.");
  return tries;
};

/** What is learned. */
const readAuto = (entry: Entry, { autoMem }: TaskResources): GroupSpec["auto"] => {
  const timeRequest = valueOf(entry, "time-request") === AUTO;
  return autoMem !== true && !timeRequest
    ? undefined
    : { ...(autoMem === true ? { mem: true } : {}), ...(timeRequest ? { timeRequest } : {}) };
};

/** `local: true` sends a task here whatever it asks for; `cluster: local` only what this machine has. */
const isSentHere = ({ task, defaults }: Entry): boolean =>
  task.local === true || (defaults.local === true && task.local === undefined && task.cluster === undefined);

const readCluster = (source: Source, entry: Entry): string | undefined => {
  const cluster = valueOf(entry, "cluster");
  if (cluster !== undefined) checkName(source, entry.path("cluster"), cluster);
  if (valueOf(entry, "local") !== true) return cluster;
  // A task's own `local` is stronger than a default cluster, and the other way round.
  if (entry.task.cluster !== undefined && entry.task.local !== true) return cluster;
  const clash =
    cluster !== undefined && cluster !== "local" && (entry.task.local !== true || entry.task.cluster !== undefined);
  return clash
    ? badValue(source, entry.path("local"), `contradicts cluster: ${cluster}`, "Keep one of them.")
    : "local";
};

/** Where `each` is wrong: any placeholder may have a value. */
const UNREAD: TaskItems = { items: { kind: "one" }, kind: "json" };

/** One entry as the server keeps it, and what its items are. What is wrong with it is in `problems`. */
export const readGroup = (
  source: Source,
  entry: Entry,
  index: number,
  name: string,
  after: readonly Dependency[],
  context: { readonly cwd: string; readonly limit: number; readonly problems: Problems },
): { group: GroupSpec; each: TaskItems; backend: string | undefined } => {
  const { take, found } = context.problems;
  const before = found.length;
  take(() => refuseLater(source, entry.task, ["tasks", index]));
  const written = new Map<string, { value: string | number; path: Path }>();
  take(() => collectAmounts(source, entry.defaults, ["defaults"], written));
  take(() => collectAmounts(source, entry.task, ["tasks", index], written));
  const perItem = [...written].some(([amount, { value }]) => dependsOnItem(amount, value));
  const each =
    take(() => readEach(source, ["tasks", index, "each"], entry.task.each, { ...context, perItem })) ?? UNREAD;
  const text = (key: "cwd" | "stdout" | "stderr"): string | undefined => {
    const value = valueOf(entry, key);
    return value === undefined ? undefined : take(() => checkPath(source, entry.path(key), value, each.kind));
  };
  const queue = valueOf(entry, "queue");
  if (queue !== undefined) take(() => checkName(source, entry.path("queue"), queue));
  const whole = (key: "retries" | "priority", min: number, max: number): number =>
    take(() => wholeNumber(source, entry.path(key), valueOf(entry, key), min, max)) ?? 0;
  const time = (key: "time-limit" | "time-request" | "retry-delay"): number | undefined =>
    take(() => duration(source, entry, key));
  const retries = whole("retries", 0, MAX_RETRIES);
  const rightSoFar = found.length;
  const amounts = readResources(source, written, each.kind, retries, take);
  const read = found.length === rightSoFar ? amounts : undefined;
  const { job, backend } = take(() => readJob(source, entry, index)) ?? { job: undefined, backend: undefined };
  const files = {
    outputs: undefined,
    inputs: undefined,
    skip: undefined,
    ...readFiles(source, entry, each.kind, context.problems),
  };
  const group = without<GroupSpec>({
    name,
    command: take(() => readCommand(source, ["tasks", index, "run"], entry.task.run, each.kind)) ?? [],
    items: each.items,
    colsep: each.colsep,
    after,
    resources: amounts.resources,
    itemResources: amounts.itemResources,
    attemptResources: amounts.attemptResources,
    auto: readAuto(entry, amounts),
    env: take(() => readEnv(source, entry, index, each.kind)),
    cwd: text("cwd"),
    stdout: text("stdout"),
    stderr: text("stderr"),
    append: valueOf(entry, "append") === true ? true : undefined,
    ...files,
    timeLimit: time("time-limit"),
    timeRequest: time("time-request"),
    priority: whole("priority", -MAX_PRIORITY, MAX_PRIORITY),
    retries,
    memRetry: read === undefined ? undefined : take(() => readMemRetry(source, entry, read)),
    retryDelay: time("retry-delay") ?? 0,
    executor: valueOf(entry, "executor") ?? "process",
    pin: valueOf(entry, "pin"),
    cluster: take(() => readCluster(source, entry)),
    queue,
    redirect: isSentHere(entry) ? { here: {} } : undefined,
    ranks: take(() => readRanks(source, entry)),
    job,
  });
  if (found.length === before) take(() => checkValues(source, ["tasks", index, "each", "values"], group, each.input));
  return { group, each, backend };
};

/** Values that are written out are checked here; everything that is streamed is checked where it arrives. */
const checkValues = (source: Source, path: Path, group: GroupSpec, input: ItemsInput | undefined): void => {
  const { items } = group;
  if (items.kind === "matrix")
    for (const place of telling(items))
      parsed(source, [...path.slice(0, -1), "matrix"], () => checkItem(group, matrixItem(items, place), true, place));
  if (input?.kind !== "values" || !Array.isArray(input.values)) return;
  for (const [i, stored] of (input.values as readonly string[]).entries()) {
    parsed(source, [...path, i], () => checkItem(group, stored, input.json, i));
  }
};
