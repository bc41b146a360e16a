import type { GroupSpec } from "./spec.ts";
import { compileTask } from "./task-template.ts";
import { type Placeholder, compileTrusted } from "./template.ts";

/**
 * What a task does, as it was written: equal texts and equal items do the same. The environment is what the file and the options
 * give: what was captured differs with each login.
 */
export const workOf = (cwd: string, spec: GroupSpec): string => {
  const { command, env, cwd: own, executor, items, colsep, outputs, inputs } = spec;
  return JSON.stringify([
    cwd,
    command,
    Object.entries(env ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    own ?? "",
    executor,
    items.kind === "one",
    ...(colsep === undefined ? [] : [colsep]),
    ...(outputs === undefined && inputs === undefined ? [] : [{ outputs, inputs }]),
  ]);
};

/** The placeholders that what a task does depends on. */
export const usesOf = (spec: GroupSpec): ReadonlySet<Placeholder> => {
  const { argv, env, cwd } = compileTask(spec);
  const files = [...(spec.outputs ?? []), ...(spec.inputs ?? [])].map((text) => compileTrusted(text));
  const templates = [...argv, ...env.map(([, value]) => value), ...(cwd === undefined ? [] : [cwd]), ...files];
  return new Set(templates.flatMap(({ uses }) => [...uses]));
};
