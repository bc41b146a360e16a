import { createRoute, z } from "@hono/zod-openapi";
import { TASK_STATES } from "../core/states.ts";
import { RunParams, TaskParams, attemptNumber, bytes, flag, json, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { TaskView, WhyView } from "./schemas.ts";
import type { Service } from "./service.ts";
import { sendBytes, someBytes } from "./streams.ts";

export const addTasks = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/tasks`,
      summary: "Tasks of a run, in order",
      request: {
        params: RunParams,
        query: z.object({
          state: z.enum(TASK_STATES).optional(),
          offset: wholeOr(0),
          limit: wholeOr(100, 1, 10_000),
        }),
      },
      responses: json(z.array(TaskView), "Tasks", "no-such-run"),
    }),
    async (context) =>
      context.json(await service.tasks(context.req.valid("param").run, context.req.valid("query")), 200),
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/tasks/{task}`,
      summary: "One task with its attempts",
      request: { params: TaskParams },
      responses: json(TaskView, "The task", "no-such-run", "no-such-task"),
    }),
    async (context) => {
      const { run, task } = context.req.valid("param");
      return context.json(await service.task(run, task), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/tasks/{task}/logs`,
      summary: "What a task wrote in its last attempt, or in another",
      request: {
        params: TaskParams,
        query: z.object({
          stream: z.enum(["stdout", "stderr"]).default("stdout"),
          follow: flag,
          /** The last one unless named. */
          attempt: attemptNumber,
          /** Where to begin, and how many bytes at most. */
          from: wholeOr(0),
          bytes: wholeQuery(1).optional(),
        }),
      },
      responses: bytes("no-such-run", "no-such-task", "no-such-attempt", "output-replaced", "output-damaged"),
    }),
    async (context) => {
      const { run, task } = context.req.valid("param");
      const abort = new AbortController();
      const { from, bytes: count = Infinity, ...query } = context.req.valid("query");
      const all = await service.taskLogs(run, task, { ...query, signal: abort.signal });
      const wanted = from === 0 && count === Infinity ? all : someBytes(all, from, count);
      return sendBytes(context.env.outgoing, wanted, abort) as never;
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/tasks/{task}/why`,
      summary: "Why it is not running, or why it failed",
      request: { params: TaskParams },
      responses: json(WhyView, "Cause, detail, remedy", "no-such-run", "no-such-task"),
    }),
    async (context) => {
      const { run, task } = context.req.valid("param");
      return context.json(await service.why(run, task), 200);
    },
  );
};
