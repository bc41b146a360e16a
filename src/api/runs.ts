import { createRoute, z } from "@hono/zod-openapi";
import type { IncomingMessage } from "node:http";
import { OF_BODIES, OF_CHANGES, RunParams, flag, json, jsonOrLines, ndjson, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { IDEMPOTENCY_KEY, IdempotencyHeader, firstWithKey, keyOf } from "./idempotency.ts";
import { nextHeader } from "./pages.ts";
import { RunDocument } from "./run-document.ts";
import {
  CancelAnswer,
  CancelRequest,
  EfficiencyView,
  OutputLostView,
  RetryAnswer,
  RetryRequest,
  RunState,
  RunView,
  SubmitAnswer,
  WhyView,
} from "./schemas.ts";
import { SlipwayError } from "../errors.ts";
import type { Service } from "./service.ts";
import { documentValues, readValues, sendLines } from "./streams.ts";

const submitRoute = createRoute({
  method: "post",
  path: `${BASE}/runs`,
  summary: "Submit a run",
  description:
    "As application/json: the document with all values inside. As application/x-ndjson: the document, then lines {group, items} for groups with each: {stream}, then {end: true}. The answer comes when the run is on disk; a repeated uuid is the same run, even while the first request is still being sent; the same uuid with different content is refused. With watch=true lines follow the answer, as GET /runs/{run}/watch sends them: the run each time it changes, until it has ended.",
  request: {
    headers: IdempotencyHeader,
    query: z.object({ watch: flag }),
    body: { content: { "application/json": { schema: RunDocument }, "application/x-ndjson": { schema: z.string() } } },
  },
  responses: jsonOrLines(
    SubmitAnswer,
    RunView,
    "The run's id; with watch=true as the first line, then the run each time it changes",
    "bad-value",
    "unknown-key",
    "unknown-placeholder",
    "unknown-task",
    "cycle",
    "too-many-tasks",
    "no-such-cluster",
    "no-such-run",
    "cannot-fit",
    "stopping",
    "journal-waits",
    "uuid-taken",
    ...OF_BODIES,
    ...OF_CHANGES,
  ),
});

const isWatched = (text: string | undefined): boolean => {
  const read = flag.safeParse(text);
  if (!read.success) throw new SlipwayError("bad-request", { detail: "watch: must be true or false" });
  return read.data;
};

/** Taking runs in, and what they are now. */
const addRunList = (app: Api, service: Service): void => {
  // documented here, but not validated as a whole: bodies are checked line by line as they come
  app.openAPIRegistry.registerPath(submitRoute);
  app.post(`${BASE}/runs`, async (context) => {
    const lines = /^application\/x-ndjson\b/i.test(context.req.header("content-type") ?? "");
    // read as Node has it: a web stream around it costs more than the rest; a refusal half way must still be answered
    const incoming = context.env.incoming as IncomingMessage;
    const values = lines ? readValues(incoming.iterator({ destroyOnReturn: false })) : documentValues(incoming);
    const key = keyOf(context.req.header(IDEMPOTENCY_KEY));
    const watch = isWatched(context.req.query("watch"));
    const submitted = await service.submit(firstWithKey(values, key));
    if (!watch) return context.json(submitted, 200);
    const abort = new AbortController();
    const views = await service.watch(submitted.run, abort.signal);
    return sendLines(context.env.outgoing, views, abort, submitted);
  });
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs`,
      summary: "Runs, newest first",
      description: "The header slipway-next of the answer is the cursor of the next page; it is absent at the end.",
      request: {
        query: z.object({
          limit: wholeOr(100, 1, 10_000),
          cursor: wholeQuery().optional(),
          state: RunState.optional(),
          name: z.string().max(1000).optional().openapi({ description: "Runs of this name" }),
        }),
      },
      responses: json(z.array(RunView), "Runs without their groups"),
    }),
    (context) => {
      const { items, next } = service.runs(context.req.valid("query"));
      return context.json(items, 200, nextHeader(next));
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}`,
      summary: "One run with its groups",
      request: { params: RunParams },
      responses: json(RunView, "The run", "no-such-run"),
    }),
    async (context) => context.json(await service.run(context.req.valid("param").run), 200),
  );
};

const addEfficiency = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/efficiency`,
      summary: "What its tasks asked for, and what they used",
      request: { params: RunParams },
      responses: json(EfficiencyView, "Group by group, of tasks that ended well", "no-such-run"),
    }),
    async (context) => context.json(await service.efficiency(context.req.valid("param").run), 200),
  );
};

/** What lasts as long as the run does. */
const addRunStreams = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/watch`,
      summary: "Follow a run until it ends",
      request: { params: RunParams },
      responses: ndjson(RunView, "The run, each time it changes", "no-such-run"),
    }),
    async (context) => {
      const abort = new AbortController();
      return sendLines(
        context.env.outgoing,
        await service.watch(context.req.valid("param").run, abort.signal),
        abort,
      ) as never;
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/logs`,
      summary: "Output of all its tasks",
      request: {
        params: RunParams,
        query: z.object({ stream: z.enum(["stdout", "stderr"]).default("stdout"), follow: flag }),
      },
      responses: ndjson(
        z.object({ task: z.string(), data: z.string(), outputLost: OutputLostView.optional() }),
        "Pieces of output in base64; after a task's last one, how much of it was lost",
        "no-such-run",
        "output-damaged",
      ),
    }),
    async (context) => {
      const abort = new AbortController();
      const pieces = await service.runLogs(context.req.valid("param").run, {
        ...context.req.valid("query"),
        signal: abort.signal,
      });
      return sendLines(context.env.outgoing, pieces, abort) as never;
    },
  );
};

const addRunChanges = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/runs/{run}/cancel`,
      summary: "Cancel a run or some of its tasks",
      request: {
        params: RunParams,
        body: { content: { "application/json": { schema: CancelRequest } }, required: false },
      },
      responses: json(
        CancelAnswer,
        "How many were cancelled, and how many are still stopping",
        "no-such-run",
        "no-such-task",
        "run-active",
        ...OF_BODIES,
        ...OF_CHANGES,
      ),
    }),
    async (context) => {
      const body = context.req.valid("json") ?? {};
      return context.json(
        await service.cancel(context.req.valid("param").run, body.tasks, body.reason ?? "cancelled by the user"),
        200,
      );
    },
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/runs/{run}/retry`,
      summary: "Run tasks again",
      description:
        "Failed and cancelled tasks, all, or those chosen by number, state or name; what was cancelled behind them waits for them again. They keep their cluster, queue, environment and command; `set` gives them other amounts this time. Only a run that has ended can be retried.",
      request: {
        params: RunParams,
        body: { content: { "application/json": { schema: RetryRequest } }, required: false },
      },
      responses: json(
        RetryAnswer,
        "How many were reopened",
        "no-such-run",
        "no-such-task",
        "run-active",
        "bad-value",
        "cannot-fit",
        "stopping",
        ...OF_BODIES,
        ...OF_CHANGES,
      ),
    }),
    async (context) =>
      context.json(
        await service.retry(context.req.valid("param").run, context.req.valid("json") ?? { which: "failed" }),
        200,
      ),
  );
};

const addWhy = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/why`,
      summary: "Why it is not running, or why it failed",
      request: { params: RunParams },
      responses: json(WhyView, "Cause, detail, remedy", "no-such-run"),
    }),
    async (context) => context.json(await service.why(context.req.valid("param").run, undefined), 200),
  );
};

export const addRuns = (app: Api, service: Service): void => {
  addRunList(app, service);
  addEfficiency(app, service);
  addRunStreams(app, service);
  addRunChanges(app, service);
  addWhy(app, service);
};
