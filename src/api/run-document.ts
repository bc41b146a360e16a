import { z } from "@hono/zod-openapi";
import { DefaultsInput, EachInput, RunInput, TaskInput } from "../config/run-schema.ts";

/**
 * A run as a request carries it: what a file may say, less what only files have. It describes the shape; what the values
 * mean (names, placeholders, amounts, dependencies) is checked when the run is taken in.
 */

/** Keys that are known and refused until they do something. */
const LATER = { in: true, out: true } as const;

const Task = TaskInput.omit(LATER).extend({
  // the server does not read its clients' files
  each: EachInput.omit({ lines: true, json: true }).optional(),
});

export const RunDocument = RunInput.extend({
  defaults: DefaultsInput.omit(LATER).optional(),
  tasks: z.array(Task).min(1),
}).openapi("RunDocument", {
  description: "A run's file as JSON (docs/run-file.md), with `uuid`, `cwd` and `environment`",
});
