import { type CommandOptions, commandLine, ITEM_OPTIONS, runPart, taskPart, typedRun, usage } from "./command-line.ts";
import { readRunAfter } from "./dependencies.ts";
import { documentOf, type RunDocument } from "./run-file.ts";
import type { RunInput } from "./run-schema.ts";
import type { Path, Source } from "./source.ts";

/** The document of `slipway run [options] -- COMMAND…`: what a file with one task would hold. */
export const runFromCommand = (command: readonly string[], options: CommandOptions = {}): RunDocument => {
  const { value, source, defaultName } = typedRun(command, options);
  return documentOf(value, source, defaultName);
};

/** A file with options: what is typed overrides the file, in every task. */
export const withOptions = (document: RunDocument, options: CommandOptions): RunDocument => {
  for (const key of [...ITEM_OPTIONS, "colsep", "outputs", "inputs"]) {
    if (options[key] === undefined || options[key] === false) continue;
    const instead = key === "outputs" || key === "inputs" ? key : "each";
    usage(`--${key} goes with a command; in a file, write \`${instead}\` in the task`);
  }
  // The options' shape is checked on its own, as is what could later not be told apart from the file's.
  const checked = documentOf(
    { ...runPart(options), tasks: [{ run: ["true"], ...taskPart(options) }] },
    commandLine,
    "run",
  );
  const { tasks, after, ...run } = checked.value;
  const [{ run: _run, ...typedTask }] = tasks as [Task];
  readRunAfter(commandLine, ["after"], after);
  const afters = [document.value.after, after].flat().filter((entry) => entry !== undefined);
  const value: RunInput = {
    ...document.value,
    ...run,
    ...(afters.length === 0 ? {} : { after: afters }),
    tasks: document.value.tasks.map((task) => ({
      ...withoutOther(task, typedTask),
      ...typedFor(task, typedTask),
      ...merged("resources", task, typedTask),
      ...merged("env", task, typedTask),
    })),
  };
  return { ...document, value, source: typedOver(document.source, run, typedTask) };
};

type Task = RunInput["tasks"][number];

/** Where a document was written whose keys were partly typed: problems of options name the flag, others the file. */
const typedOver = (file: Source, run: Partial<RunInput>, task: Readonly<Record<string, unknown>>): Source => {
  const isTyped = (path: Path): boolean => {
    if (path[0] !== "tasks") return Object.hasOwn(run, path[0] ?? "");
    const [key = "", name] = path.slice(2);
    const value = task[key];
    return key === "resources" || key === "env" ? Object.hasOwn(value ?? {}, name ?? "") : value !== undefined;
  };
  return { locate: (path, at) => (isTyped(path) ? commandLine : file).locate(path, at) };
};

/** `--local` replaces a task's cluster, and `--cluster` its `local`. */
const withoutOther = (task: Task, typedTask: Partial<Task>): Task => {
  const { cluster: _cluster, queue: _queue, ...elsewhere } = task;
  const { local: _local, ...anywhere } = task;
  return typedTask.local === true ? elsewhere : typedTask.cluster === undefined ? task : anywhere;
};

/** `--skip` is for tasks that have outputs. */
const typedFor = ({ outputs }: Task, { skip, ...typedTask }: Partial<Task>): Partial<Task> =>
  outputs === undefined || skip === undefined ? typedTask : { ...typedTask, skip };

const merged = (key: "resources" | "env", task: Task, typedTask: Partial<Task>): Partial<Task> =>
  typedTask[key] === undefined ? {} : { [key]: { ...task[key], ...typedTask[key] } };
