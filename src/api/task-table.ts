import { createRoute, z } from "@hono/zod-openapi";
import { TASK_STATES, type TaskState } from "../core/states.ts";
import { SlipwayError } from "../errors.ts";
import { RunParams, flag, ndjson, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Service } from "./service.ts";
import { sendGroups } from "./streams.ts";

/** The table of a run's tasks: filtered, sorted, page by page. */

const time = z.string().nullable();

/** A task and its latest attempt, flat; null where nothing is known. Seconds and bytes. */
export const TaskRowView = z
  .object({
    id: z.string(),
    index: z.number(),
    name: z.string(),
    group: z.string(),
    item: z.string().nullable(),
    state: z.enum(TASK_STATES),
    /** It is DONE without having run. */
    skipped: z.boolean().optional(),
    exitCode: z.number().nullable(),
    signal: z.string().nullable(),
    reason: z.string().nullable(),
    /** How many it has had, and how many of those that are kept were lost. */
    attempts: z.number(),
    lost: z.number(),
    host: z.string().nullable(),
    agent: z.string().nullable(),
    pilot: z.string().nullable(),
    started: time,
    finished: time,
    /** From its start to its end, or until now. */
    wall: z.number().nullable(),
    cpuUser: z.number().nullable(),
    cpuSystem: z.number().nullable(),
    peakMemory: z.number().nullable(),
    readBytes: z.number().nullable(),
    writtenBytes: z.number().nullable(),
    stdoutBytes: z.number().nullable(),
    stderrBytes: z.number().nullable(),
    command: z.array(z.string()),
  })
  .openapi("TaskRow");

export type TaskRowView = z.infer<typeof TaskRowView>;

/** The last line of a page: where the next one begins, null if this was the last; with `offset`, how many there are. */
const PageEnd = z.object({ next: z.string().nullable(), total: z.number().optional() }).openapi("TaskPageEnd");

export type TaskLine = TaskRowView | z.infer<typeof PageEnd>;

export interface TaskTableQuery {
  readonly states: readonly TaskState[];
  readonly names: readonly string[];
  readonly hosts: readonly string[];
  readonly exitCodes: readonly number[];
  /** Seconds. */
  readonly longer: number | undefined;
  /** Epoch milliseconds. */
  readonly endedSince: number | undefined;
  readonly lost: boolean;
  readonly sort: "index" | "duration";
  readonly reverse: boolean;
  readonly limit: number;
  readonly cursor: string | undefined;
  /** How many of them come before the page; undefined: the page follows the cursor, or is the first. */
  readonly offset: number | undefined;
}

export const MOST_TASKS_A_PAGE = 10_000;

/** A parameter that may be repeated; `items` is what each must look like, beyond being text. */
const several = (most: number, items: { readonly enum?: string[]; readonly pattern?: string } = {}) =>
  z
    .union([z.string().max(1000), z.array(z.string().max(1000)).max(most)])
    .optional()
    .transform((value): string[] => (value === undefined ? [] : Array.isArray(value) ? value : [value]))
    .openapi({ type: "array", items: { type: "string", ...items } });

/** The row after which a page begins, by what it was sorted (`-`: nothing), and when the first page was asked for. */
export const TASK_CURSOR = /^[0-9]{1,9}~(-|-?[0-9]{1,20}(\.[0-9]{1,20})?(e[-+]?[0-9]{1,3})?)~[0-9]{1,15}$/;
const EXIT_CODE = /^[0-9]{1,5}$/;

const TableQuery = z.object({
  state: several(TASK_STATES.length, { enum: [...TASK_STATES] }),
  name: several(1000),
  host: several(1000),
  exitCode: several(256, { pattern: EXIT_CODE.source }),
  longer: z
    .string()
    .regex(/^\d{1,12}(\.\d{1,6})?$/, "must be a number of seconds")
    .transform(Number)
    .optional()
    .openapi({ type: "number", minimum: 0 }),
  /** Epoch milliseconds. */
  endedSince: wholeQuery().optional(),
  lost: flag,
  sort: z.enum(["index", "duration"]).default("index"),
  reverse: flag,
  limit: wholeOr(1000, 1, MOST_TASKS_A_PAGE),
  cursor: z.string().max(200).regex(TASK_CURSOR, "must be one that a page ended with").optional(),
  /** Any page at once, without those before it: the order is made once for each state of the run. */
  offset: wholeQuery().optional(),
});

const stateOf = (text: string): TaskState => {
  const found = TASK_STATES.find((state) => state === text);
  if (found === undefined) throw new SlipwayError("bad-request", { detail: `there is no task state ${text}` });
  return found;
};

const codeOf = (text: string): number => {
  if (!EXIT_CODE.test(text)) throw new SlipwayError("bad-request", { detail: `'${text}' is not an exit code` });
  return Number(text);
};

export const addTaskTable = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/task-table`,
      summary:
        "A page of the table of a run's tasks: one task per line, then a line that says where the next page begins",
      request: { params: RunParams, query: TableQuery },
      responses: ndjson(z.union([TaskRowView, PageEnd]), "Tasks, one per line, then `next`", "no-such-run"),
    }),
    async (context) => {
      const { state, name, host, exitCode, ...query } = context.req.valid("query");
      const abort = new AbortController();
      const lines = await service.taskTable(
        context.req.valid("param").run,
        {
          ...query,
          longer: query.longer,
          endedSince: query.endedSince,
          cursor: query.cursor,
          offset: query.offset,
          states: state.map(stateOf),
          names: name,
          hosts: host,
          exitCodes: exitCode.map(codeOf),
        },
        abort.signal,
      );
      return sendGroups(context.env.outgoing, lines, abort) as never;
    },
  );
};
