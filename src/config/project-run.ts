import type { Written } from "./key-table.ts";
import type { Level } from "./project-file.ts";
import { RUN_SETTINGS, TASK_SETTINGS } from "./project-keys.ts";
import type { RunDocument } from "./run-file.ts";
import type { DefaultsInput, RunInput, TaskInput } from "./run-schema.ts";
import type { Path } from "./source.ts";

/** What a project chose for its tasks, put behind what a run says itself. */

export interface Setting extends Written {
  readonly file: string;
  readonly value: unknown;
}

/** By key, `env.NAME` and `resources.NAME` by name: the strongest level that says something wins. */
export type Settings = ReadonlyMap<string, Setting>;

const SELECTION = ["cluster", "local", "queue"] as const;
const BY_NAME: readonly string[] = ["env", "resources"];

export const settingsOf = (levels: readonly Level[]): Settings => {
  const settings = new Map<string, Setting>();
  for (const { file, source, path, input } of levels) {
    // A queue belongs to its cluster: where a stronger level chooses another, it chooses the queue too, or none.
    if (input.cluster !== undefined || input.local === true) for (const key of SELECTION) settings.delete(key);
    for (const key of [...TASK_SETTINGS, ...RUN_SETTINGS]) {
      const value = input[key];
      if (value === undefined) continue;
      if (!BY_NAME.includes(key)) settings.set(key, { file, source, path: [...path, key], value });
      else
        for (const [name, inner] of Object.entries(value))
          settings.set(`${key}.${name}`, { file, source, path: [...path, key, name], value: inner });
    }
  }
  return settings;
};

/** The settings of a map, such as `env`. */
const within = (settings: Settings, key: string): Record<string, unknown> =>
  Object.fromEntries(
    [...settings]
      .filter(([name]) => name.startsWith(`${key}.`))
      .map(([name, { value }]) => [name.slice(key.length + 1), value]),
  );

/** With ranks, amounts have other names in a run; one of each pair is enough. */
const OTHER_NAMES: Readonly<Record<string, keyof DefaultsInput>> = { cpus: "cpus-per-rank", gpus: "gpus-per-rank" };

const withDefaults = (settings: Settings, defaults: DefaultsInput): DefaultsInput => {
  const below: Record<string, unknown> = {};
  for (const [key, { value }] of settings) {
    const other = OTHER_NAMES[key];
    const plain = !key.includes(".") && !(SELECTION as readonly string[]).includes(key) && key !== "max-fails";
    if (plain && (other === undefined || defaults[other] === undefined)) below[key] = value;
  }
  const merged: Record<string, unknown> = { ...below, ...defaults };
  for (const key of ["env", "resources"] as const) {
    const names = { ...within(settings, key), ...defaults[key] };
    if (Object.keys(names).length > 0) merged[key] = names;
  }
  return merged;
};

/** Where a task goes that does not say so, nor the run's defaults. */
const selectionFor = (settings: Settings, task: TaskInput, defaults: DefaultsInput): Partial<TaskInput> => {
  const says = (key: (typeof SELECTION)[number]): boolean => (task[key] ?? defaults[key]) !== undefined;
  if (says("cluster") || (task.local ?? defaults.local) === true) return {};
  return Object.fromEntries(
    SELECTION.filter((key) => settings.has(key) && !says(key)).map((key) => [key, settings.get(key)!.value]),
  );
};

/** A run with a project's settings behind its own; each still knows where it was written. */
export const withProject = (document: RunDocument, settings: Settings): RunDocument => {
  if (settings.size === 0) return document;
  const { value, source } = document;
  const defaults = value.defaults ?? {};
  const chosen = value.tasks.map((task) => selectionFor(settings, task, defaults));
  const maxFails = value["max-fails"] ?? (settings.get("max-fails")?.value as number | undefined);
  const merged = withDefaults(settings, defaults);
  const settingAt = (path: Path): Setting | undefined => {
    const [top, ...rest] = path;
    if (top === "max-fails") return value["max-fails"] === undefined ? settings.get("max-fails") : undefined;
    if (top === "tasks") {
      const [i, key] = rest;
      return Object.hasOwn(chosen[Number(i)] ?? {}, key ?? "") ? settings.get(String(key)) : undefined;
    }
    const [key = "", name = ""] = rest.map(String);
    const own = BY_NAME.includes(key) ? (defaults as Record<string, object | undefined>)[key] : defaults;
    const last = BY_NAME.includes(key) ? name : key;
    return top !== "defaults" || Object.hasOwn(own ?? {}, last)
      ? undefined
      : settings.get(BY_NAME.includes(key) ? `${key}.${name}` : key);
  };
  const withSettings: RunInput = {
    ...value,
    ...(maxFails === undefined ? {} : { "max-fails": maxFails }),
    ...(Object.keys(merged).length === 0 ? {} : { defaults: merged }),
    tasks: value.tasks.map((task, i) => ({ ...task, ...chosen[i] })),
  };
  return {
    ...document,
    value: withSettings,
    source: {
      locate: (path, at) => {
        const setting = settingAt(path);
        return setting === undefined ? source.locate(path, at) : setting.source.locate(setting.path, at);
      },
    },
  };
};
