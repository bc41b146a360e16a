import { checkShape, type KeyHint, type KeysAt } from "./check-shape.ts";
import { acceptedRun } from "./accepted-run.ts";
import { EachInput, RUN_KEYS, RunInput, TASK_KEYS } from "./run-schema.ts";
import type { Problems } from "./problems.ts";
import { badValue, jsonSource, type Path, type Source } from "./source.ts";
import { MANAGER_SUGGESTED } from "./task-job-keys.ts";

/** A run as it was written, its shape checked. Files, requests and command lines all become this. */
export interface RunDocument {
  readonly value: RunInput;
  readonly source: Source;
  /** The run's name when it has none of its own. */
  readonly defaultName: string;
  /** What was found wrong so far; buildRun adds to it and throws it. */
  readonly problems?: Problems;
}

const EACH_KEYS = Object.keys(EachInput.shape);
const ONLY_TASKS = new Set(["name", "run", "each", "after"]);
/** Keys that no file may have. */
export const ONLY_REQUESTS: readonly string[] = ["environment", "uuid", "resume"];

const keysAt: KeysAt = (path) => {
  if (path.at(-1) === "each") return EACH_KEYS.filter((key) => key !== "stream");
  if (path[0] === "tasks") return [...TASK_KEYS, ...MANAGER_SUGGESTED];
  if (path[0] === "defaults") return [...TASK_KEYS.filter((key) => !ONLY_TASKS.has(key)), ...MANAGER_SUGGESTED];
  return RUN_KEYS.filter((key) => !ONLY_REQUESTS.includes(key));
};

/** What other tools call it. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  run: ["command", "cmd", "script", "shell", "exec"],
  after: ["needs", "depends", "depends-on", "requires", "dependencies"],
  each: ["array", "items", "foreach", "for-each", "matrix", "values", "lines", "json"],
  cpus: ["cpu", "cores", "threads", "ncpus"],
  mem: ["memory", "ram"],
  "time-limit": ["timeout", "walltime", "time"],
  retries: ["retry", "attempts"],
  env: ["environment", "vars", "variables"],
  cwd: ["dir", "directory", "workdir", "working-directory", "chdir"],
  stdout: ["output"],
  stderr: ["error"],
  tasks: ["jobs", "steps", "task"],
};

const knownHere = (key: string, path: Path): string | undefined => {
  const word = key.toLowerCase().replaceAll("_", "-");
  const known = keysAt(path);
  return Object.keys(ELSEWHERE).find((ours) => known.includes(ours) && ELSEWHERE[ours]!.includes(word));
};

/** Keys that are right, but somewhere else: in the file, or in another tool. */
const misplaced: KeyHint = (key, path) => {
  if (path.length === 0 && TASK_KEYS.includes(key)) return " here; it belongs to a task, or under `defaults`";
  if (path[0] === "defaults" && ONLY_TASKS.has(key)) return " here; it belongs to a task";
  if (path.length > 0 && path.length <= 2 && RUN_KEYS.includes(key)) return " here; it belongs to the top of the file";
  const ours = knownHere(key, path);
  return ours === undefined ? undefined : `; did you mean '${ours}'?`;
};

/** Checks the shape of a value from anywhere. */
export const documentOf = (value: unknown, source: Source, defaultName: string, problems?: Problems): RunDocument => ({
  value:
    acceptedRun(value) ??
    checkShape(RunInput, value, source, keysAt, misplaced, problems && { problems, instead, mend }),
  source,
  defaultName,
  ...(problems === undefined ? {} : { problems }),
});

/** A task without a command is looked at as if it had one. */
const instead = (path: Path): unknown => (path.length === 3 && path[2] === "run" ? "true" : undefined);

/** Items that cannot be read may have any field. */
const mend = (value: unknown): void => {
  const { tasks } = value as { tasks?: unknown };
  for (const task of Array.isArray(tasks) ? (tasks as { each?: unknown }[]) : [])
    if (typeof task?.each === "object" && task.each !== null && Object.keys(task.each).length === 0)
      task.each = { stream: "json" };
};

/** Reads the body of a request: the same keys as JSON. `where` of a problem is its path, such as `tasks[1].cpus`. */
export const readRunBody = (body: unknown, problems?: Problems): RunDocument => {
  const document = documentOf(body, jsonSource, "run", problems);
  for (const [i, { each }] of document.value.tasks.entries()) {
    const key = each?.lines !== undefined ? "lines" : each?.json !== undefined ? "json" : undefined;
    if (key !== undefined) {
      const remedy = `Send each: {stream: "${key}"} and the items in the request's stream, or each: {values: […]}.`;
      badValue(jsonSource, ["tasks", i, "each", key], "the server does not read its clients' files", remedy);
    }
  }
  return document;
};
