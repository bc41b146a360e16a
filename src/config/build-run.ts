import { isAbsolute, resolve } from "node:path";
import { itemCount, type GroupSpec, type RunSpec } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import { checkEnvName, readGroup, refuseLater, without } from "./build-group.ts";
import { entryOf, wholeNumber } from "./task-entry.ts";
import { readRunAfter, readTaskAfter, refuseCycles } from "./dependencies.ts";
import { checkItemDependencies } from "./item-dependencies.ts";
import { captureEnvironment, MAX_ENVIRONMENT_BYTES } from "./environment.ts";
import type { RunDocument } from "./run-file.ts";
import { outputsOf, refuseSharedOutputs, type Output } from "./shared-outputs.ts";
import { createProblems, type Problems } from "./problems.ts";
import { badValue, type Path } from "./source.ts";
import type { ItemsInput } from "./task-items.ts";
import { refuseJobKeys } from "./task-job-keys.ts";
import { checkName, checkText } from "./text-rules.ts";

export const DEFAULT_TASKS_PER_RUN = 10_000_000;
const MAX_FAILS = 2 ** 31 - 1;

export interface BuildContext {
  /** Where the command was typed; a request's own `cwd` comes before it. */
  readonly cwd?: string;
  /** The environment to capture from, unless the request carries one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Most tasks a run may have (`limits.tasks-per-run`). */
  readonly limit?: number;
}

export interface BuiltRun {
  readonly spec: RunSpec;
  /** For each group of kind `list`, where its items come from. Lists that are still to be read count 0 in the spec. */
  readonly items: ReadonlyMap<number, ItemsInput>;
  /** For each group that has one: what `backend` says, which its cluster's manager reads. */
  readonly backends: ReadonlyMap<number, string>;
  /** Variables that could not be captured because they are not UTF-8. */
  readonly dropped: readonly string[];
  readonly uuid?: string;
}

/** Every group's name, unique. Entries without one are `task-N`, or named as the run when they are alone. */
const readNames = ({ value, source }: RunDocument, runName: string, { take }: Problems): string[] => {
  const taken = new Map<string, number>();
  const check = (name: string, path: Path): void => {
    checkName(source, path, name);
    if (name.startsWith("run:")) badValue(source, path, "must not start with run:, which means an earlier run");
    const first = taken.get(name);
    if (first === undefined) return;
    const { where } = source.locate(["tasks", first, "name"]);
    badValue(source, path, `'${name}' is already the name of the task at ${where}`, "Give each task its own name.");
  };
  for (const [i, { name }] of value.tasks.entries()) {
    if (name === undefined) continue;
    take(() => check(name, ["tasks", i, "name"]));
    taken.set(name, i);
  }
  return value.tasks.map(({ name }, i) => {
    if (name !== undefined) return name;
    if (value.tasks.length === 1 && !runName.startsWith("run:")) return runName;
    let free = `task-${i + 1}`;
    while (taken.has(free)) free += "_";
    taken.set(free, i);
    return free;
  });
};

const readEnvironment = (document: RunDocument, context: BuildContext): ReturnType<typeof captureEnvironment> => {
  const { value, source } = document;
  const refuse = (detail: string): never => badValue(source, ["export"], detail);
  const captured =
    value.environment === undefined
      ? captureEnvironment(context.env ?? {}, value.export ?? "all", refuse)
      : { environment: value.environment, dropped: [] };
  let bytes = 0;
  for (const [name, text] of Object.entries(captured.environment)) {
    checkEnvName(source, ["environment", name], name);
    checkText(source, ["environment", name], text);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(text) + 2;
  }
  if (bytes > MAX_ENVIRONMENT_BYTES) {
    throw new SlipwayError("too-large", {
      what: "the environment",
      size: `${bytes} bytes`,
      limit: `${MAX_ENVIRONMENT_BYTES} bytes`,
    });
  }
  return captured;
};

const readCwd = ({ value, source }: RunDocument, context: BuildContext): string => {
  if (value.cwd !== undefined) {
    checkText(source, ["cwd"], value.cwd);
    if (value.cwd === "") badValue(source, ["cwd"], "is empty");
  }
  const cwd = context.cwd === undefined ? value.cwd : resolve(context.cwd, value.cwd ?? ".");
  if (cwd === undefined || !isAbsolute(cwd)) badValue(source, ["cwd"], "must be an absolute directory");
  return resolve(cwd!);
};

/** Makes a run ready for the server: everything checked, defaults applied, names resolved. All problems are thrown. */
export const buildRun = (document: RunDocument, context: BuildContext): BuiltRun => {
  const { value, source, defaultName } = document;
  const limit = context.limit ?? DEFAULT_TASKS_PER_RUN;
  const problems = createProblems(document.problems?.found);
  const { take } = problems;
  if (value.tasks.length === 0) take(() => badValue(source, ["tasks"], "has no tasks", "Write at least one."));
  const name = take(() => (value.name === undefined ? defaultName : checkName(source, ["name"], value.name))) ?? "run";
  const cwd = take(() => readCwd(document, context)) ?? "/";
  take(() => refuseLater(source, value.defaults ?? {}, ["defaults"]));
  const names = readNames(document, name, problems);
  const indices = new Map(names.map((each, i) => [each, i]));
  const runAfter = take(() => readRunAfter(source, ["after"], value.after)) ?? [];

  const groups: GroupSpec[] = [];
  const items = new Map<number, ItemsInput>();
  const backends = new Map<number, string>();
  const outputs: Output[] = [];
  let total = 0;
  let numbering = { start: 0, step: 1 };
  for (const i of value.tasks.keys()) {
    const entry = entryOf(document, i);
    const own = take(() => readTaskAfter(source, ["tasks", i, "after"], entry.task.after, indices)) ?? [];
    const after = [...runAfter, ...own];
    const { group, each, backend } = readGroup(source, entry, i, names[i]!, after, { cwd, limit, problems });
    groups.push(group);
    if (problems.found.length === 0) outputs.push(...outputsOf(group, each, entry, cwd));
    if (each.input !== undefined) items.set(i, each.input);
    if (backend !== undefined) backends.set(i, backend);
    if (each.numbering !== undefined && value.tasks.length === 1) numbering = each.numbering;
    total += itemCount(group.items);
  }
  // defaults may be for some of the tasks
  if (groups.every(({ job }) => job === undefined))
    take(() => refuseJobKeys(source, value.defaults ?? {}, ["defaults"]));
  if (total > limit) problems.add(new SlipwayError("too-many-tasks", { count: total, limit }));
  const afters = groups.map(({ after }) => after);
  // what templates and names amount to can be judged once they are right
  if (problems.found.length === 0) take(() => refuseSharedOutputs(source, outputs));
  take(() => refuseCycles(source, names, afters));
  if (problems.found.length === 0) take(() => checkItemDependencies(source, groups, items));
  const { environment, dropped } = take(() => readEnvironment(document, context)) ?? { environment: {}, dropped: [] };
  const maxFails = take(() => wholeNumber(source, ["max-fails"], value["max-fails"], 0, MAX_FAILS));
  problems.end();
  const force = value.force === true ? true : undefined;
  const spec = without<RunSpec>({
    name,
    cwd,
    env: environment,
    groups,
    maxFails,
    resumes: value.resume,
    force,
    numbering,
  });
  return without<BuiltRun>({ spec, items, backends, dropped, uuid: value.uuid });
};
