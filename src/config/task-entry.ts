import type { RunDocument } from "./run-file.ts";
import type { DefaultsInput, TaskInput } from "./run-schema.ts";
import { badValue, type Path, type Source } from "./source.ts";

/** A task's entry, with the run's defaults to fall back on. */
export interface Entry {
  readonly task: TaskInput;
  readonly defaults: DefaultsInput;
  /** Where a key was written: in the task, else in the defaults. */
  path(key: keyof TaskInput): Path;
}

export const entryOf = (document: RunDocument, index: number): Entry => {
  const task = document.value.tasks[index]!;
  return {
    task,
    defaults: document.value.defaults ?? {},
    path: (key) =>
      task[key] === undefined && key in (document.value.defaults ?? {}) ? ["defaults", key] : ["tasks", index, key],
  };
};

export const valueOf = <K extends keyof DefaultsInput>({ task, defaults }: Entry, key: K): DefaultsInput[K] =>
  task[key] ?? defaults[key];

export const wholeNumber = (
  source: Source,
  path: Path,
  value: number | undefined,
  min: number,
  max: number,
): number | undefined =>
  value !== undefined && (value < min || value > max)
    ? badValue(source, path, `must be between ${min} and ${max}, not ${value}`)
    : value;
