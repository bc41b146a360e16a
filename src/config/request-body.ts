import type { RunSpec } from "../core/spec.ts";
import type { RunDocument } from "./run-file.ts";
import type { RunInput } from "./run-schema.ts";

/**
 * What the client sends: the same document with what only the client knows. Items that it reads from files follow in the
 * request's stream, group by group in the order of `BuiltRun.items`.
 */
export const requestBody = (document: RunDocument, spec: RunSpec, uuid: string): RunInput => {
  const { export: _export, ...value } = document.value;
  return {
    ...value,
    name: spec.name,
    cwd: spec.cwd,
    environment: { ...spec.env },
    uuid,
    tasks: value.tasks.map((task) => {
      const { colsep } = task.each ?? {};
      if (task.each?.lines !== undefined)
        return { ...task, each: { stream: "lines", ...(colsep === undefined ? {} : { colsep }) } };
      return task.each?.json === undefined ? task : { ...task, each: { stream: "json" } };
    }),
  };
};
