import { z } from "zod";
import { SKIP_MODES } from "../core/task-files.ts";
import { MANAGER_KEYS, type ManagerKey } from "./task-job-keys.ts";
import type { TextPlan } from "./yaml-document.ts";

/**
 * The shape of a run as people write it: a YAML file, the options of a command, and the body of a REST request are all
 * this. Here only the shape is checked; build-run.ts checks what the values mean.
 */

const words = (error: string) => z.string({ error });
const text = words("must be text");

/** Text that may be written as a number or truth value: arguments, environment values, names. */
const anyText = z.union([z.string(), z.number(), z.boolean()], { error: "must be text" }).transform(String);

const amount = z.union([z.number(), z.string()], {
  error: "must be a number, or text such as 500M, {item.mem} or {attempt * 4}G",
});
const duration = z.union([z.number(), z.string()], { error: "must be a duration such as 90, 10m or 01:30:00" });
const whole = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const flag = z.boolean({ error: "must be true or false" });

const afterEntry = z.union([z.string(), z.number(), z.record(z.string(), z.unknown())], {
  error: "must be a name, or {NAME: ok|any|failed|same}",
});
const after = z.union([afterEntry, z.array(afterEntry)], {
  error: "must be a task's name, run:ID, {NAME: ok|any|failed|same}, or a list of these",
});

export const EachInput = z.strictObject(
  {
    array: z.union([z.string(), z.number()], { error: "must be a range such as 1-100 or 1-100:2" }).optional(),
    lines: words("must be the path of a file").optional(),
    json: words("must be the path of a file").optional(),
    values: z.array(z.unknown(), { error: "must be a list" }).optional(),
    matrix: z
      .record(z.string(), z.union([z.string(), z.number(), z.array(z.unknown())]), {
        error: "must be a map of names, each with a range such as 1-10 or a list of values",
      })
      .optional(),
    /** With lines: what separates their columns. */
    colsep: words("must be text").optional(),
    /** Only in requests: the items follow in the request's stream, as lines (`true`) or one JSON value per line. */
    stream: z.union([z.literal(true), z.enum(["lines", "json"])], { error: "must be true, lines or json" }).optional(),
  },
  { error: "must be a map with one of array, lines, json, values, matrix" },
);

const files = z.union([text, z.array(text)], { error: "must be a path, or a list of paths" });

export const RANK_LAUNCHERS = ["agents", "mpiexec", "srun"] as const;

const managerText = z.union([z.string(), z.number()], { error: "must be text" }).transform(String).optional();

const managerShape = Object.fromEntries(MANAGER_KEYS.map((key) => [key, managerText])) as {
  readonly [K in ManagerKey]: typeof managerText;
};

/** Keys that tasks and `defaults` share. */
const shared = {
  cpus: amount.optional(),
  gpus: amount.optional(),
  mem: amount.optional(),
  tmp: amount.optional(),
  nodes: z
    .union([whole, z.string()], { error: "must be a whole number, or with via: job the names of nodes" })
    .optional(),
  ranks: whole.optional(),
  "cpus-per-rank": amount.optional(),
  "gpus-per-rank": amount.optional(),
  "rank-launcher": z.enum(RANK_LAUNCHERS, { error: `must be one of ${RANK_LAUNCHERS.join(", ")}` }).optional(),
  resources: z.record(z.string(), amount, { error: "must be a map of names and amounts" }).optional(),
  "time-limit": duration.optional(),
  "time-request": duration.optional(),
  priority: whole.optional(),
  retries: whole.optional(),
  "retry-delay": duration.optional(),
  "mem-retry": whole.optional(),
  env: z
    .record(z.string(), z.union([anyText, z.null().transform(() => "")], { error: "must be text" }), {
      error: "must be a map of names and values",
    })
    .optional(),
  cwd: text.optional(),
  stdout: text.optional(),
  stderr: text.optional(),
  append: flag.optional(),
  skip: z.enum(SKIP_MODES, { error: `must be one of ${SKIP_MODES.join(", ")}` }).optional(),
  cluster: text.optional(),
  queue: text.optional(),
  via: z.enum(["pilot", "job"], { error: "must be pilot or job" }).optional(),
  local: flag.optional(),
  pin: flag.optional(),
  executor: z
    .union([z.literal("process"), z.literal("null"), z.null()], { error: "must be process or null" })
    .transform((value) => value ?? ("null" as const))
    .optional(),
  backend: text.optional(),
  ...managerShape,
  // Known, and refused until they do something: see LATER of build-group.ts.
  in: z.unknown().optional(),
  out: z.unknown().optional(),
};

export const DefaultsInput = z.strictObject(shared, { error: "must be a map of keys and values" });

export const TaskInput = z.strictObject(
  {
    name: anyText.optional(),
    run: z.union([z.string(), z.array(anyText)], {
      error: "must be a command: text for the shell, or a list of arguments",
    }),
    each: EachInput.optional(),
    after: after.optional(),
    outputs: files.optional(),
    inputs: files.optional(),
    ...shared,
  },
  { error: "must be a map of keys and values" },
);

export const RunInput = z.strictObject(
  {
    name: anyText.optional(),
    defaults: DefaultsInput.optional(),
    tasks: z.array(TaskInput, { error: "must be a list of tasks" }),
    "max-fails": whole.optional(),
    export: z.union([z.string(), z.array(z.string())], { error: "must be all, none or a list of names" }).optional(),
    after: after.optional(),
    cwd: text.optional(),
    /** Only in requests: the submitter's environment, already filtered. */
    environment: z.record(z.string(), z.string(), { error: "must be a map of names and texts" }).optional(),
    /** Only in requests: a repeated request with the same uuid is the same run. */
    uuid: z.uuid({ error: "must be a UUID" }).optional(),
    /** Tasks run whatever their outputs say. */
    force: flag.optional(),
    /** Only in requests: the id of a run that has ended; what it has done is skipped. */
    resume: whole
      .min(1, { error: "must be the id of a run" })
      .max(2 ** 31 - 1, { error: "must be the id of a run" })
      .optional(),
  },
  { error: "must be a map with the key `tasks`" },
);

export type EachInput = z.infer<typeof EachInput>;
export type DefaultsInput = z.infer<typeof DefaultsInput>;
export type TaskInput = z.infer<typeof TaskInput>;
export type RunInput = z.infer<typeof RunInput>;

/** Keys of every task; those of managers are in task-job-keys.ts. */
export const TASK_KEYS = Object.keys(TaskInput.shape).filter(
  (key) => !(MANAGER_KEYS as readonly string[]).includes(key),
);
export const RUN_KEYS = Object.keys(RunInput.shape);

const asText: TextPlan = { text: true };
const textList: TextPlan = { text: true, items: asText };
const sharedPlan = {
  env: { rest: { text: true, nullable: true } },
  cwd: asText,
  stdout: asText,
  stderr: asText,
  cluster: asText,
  queue: asText,
  executor: asText,
  backend: asText,
  ...Object.fromEntries(MANAGER_KEYS.map((key) => [key, asText])),
};

/** Where a file's scalars are text, however they look. */
export const RUN_PLAN: TextPlan = {
  keys: {
    name: asText,
    export: textList,
    cwd: asText,
    defaults: { keys: sharedPlan },
    tasks: {
      items: {
        keys: {
          ...sharedPlan,
          name: asText,
          run: textList,
          after: textList,
          each: {
            keys: {
              array: asText,
              lines: asText,
              json: asText,
              values: { items: asText },
              matrix: { rest: textList },
              colsep: asText,
            },
          },
        },
      },
    },
  },
};
