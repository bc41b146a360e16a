import { createRoute, z } from "@hono/zod-openapi";
import { RunParams, TaskParams, attemptNumber, flag, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { TaskView, WhyView } from "./schemas.ts";
import type { Service } from "./service.ts";
import { sendBytes } from "./streams.ts";

export const addTasks = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/tasks`,
      summary: "Tasks of a run, in order",
      request: {
        params: RunParams,
        query: z.object({
          state: z.string().optional(),
          offset: z.coerce.number().int().nonnegative().default(0),
          limit: z.coerce.number().int().min(1).max(10_000).default(100),
        }),
      },
      responses: json(z.array(TaskView), "Tasks"),
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
      responses: json(TaskView, "The task"),
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
        }),
      },
      responses: {
        200: { description: "The bytes, as written", content: { "application/octet-stream": { schema: z.string() } } },
      },
    }),
    async (context) => {
      const { run, task } = context.req.valid("param");
      const abort = new AbortController();
      return sendBytes(
        context.env.outgoing,
        await service.taskLogs(run, task, { ...context.req.valid("query"), signal: abort.signal }),
        abort,
      ) as never;
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/tasks/{task}/why`,
      summary: "Why it is not running, or why it failed",
      request: { params: TaskParams },
      responses: json(WhyView, "Cause, detail, remedy"),
    }),
    async (context) => {
      const { run, task } = context.req.valid("param");
      return context.json(await service.why(run, task), 200);
    },
  );
};
