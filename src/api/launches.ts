import { createRoute, z } from "@hono/zod-openapi";
import { LAUNCH_STATES } from "../core/launch.ts";
import { SlipwayError } from "../errors.ts";
import { OF_BODIES, OF_CHANGES, bytes, flag, json, ndjson, whole, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { IDEMPOTENCY_KEY, IdempotencyHeader, keyOf, withKey } from "./idempotency.ts";
import { LaunchPreview, LaunchView, OutputAnswer } from "./launch-schemas.ts";
import { LaunchRequest } from "./launch-document.ts";
import type { LaunchService } from "./launch-service.ts";
import { sendBytes, sendLines } from "./streams.ts";

const LaunchParams = z.object({ launch: whole("launch") });

const OF_MANAGERS = ["cluster-refused", "cluster-unreachable"] as const;

const isCount = (value: number | undefined): value is number => Number.isSafeInteger(value) && value! >= 0;

const outputRoute = createRoute({
  method: "post",
  path: `${BASE}/launches/{launch}/output`,
  summary: "A job's own log, piece by piece",
  description:
    "Takes that job's own token only. `rank` is the node's number in the job, `offset` is where the piece begins. The server skips what it already has; the answer says where to continue.",
  request: {
    params: LaunchParams,
    query: z.object({
      stream: z.enum(["stdout", "stderr"]),
      rank: wholeQuery(),
      offset: wholeQuery(),
    }),
    body: { content: { "application/octet-stream": { schema: z.string() } } },
  },
  responses: json(OutputAnswer, "How much the server has now", "no-such-launch", "media-type", "journal-full"),
});

const launchRoute = createRoute({
  method: "post",
  path: `${BASE}/launches`,
  summary: "Launch one batch job through its workload manager",
  description:
    "The answer comes when the manager has accepted the job; a refusal carries the manager's own message. With dry_run nothing is submitted, and the answer is the script and the command.",
  request: {
    headers: IdempotencyHeader,
    query: z.object({ dry_run: flag }),
    body: { content: { "application/json": { schema: LaunchRequest } }, required: true },
  },
  responses: json(
    z.union([LaunchView, LaunchPreview]),
    "The launch, or with dry_run what it would be",
    "bad-value",
    "unknown-key",
    "option-refused",
    "no-such-cluster",
    "no-such-queue",
    "no-such-image",
    "no-pool",
    "cannot-fit",
    "user-refused",
    "launch-failed",
    "cluster-refused",
    "cluster-unreachable",
    "stopping",
    ...OF_BODIES,
    ...OF_CHANGES,
  ),
});

const anyDocument = { content: { "application/json": { schema: z.looseObject({}) } }, required: true } as const;

/** What the streamer of a job sends. */
const addOutput = (app: Api, launches: LaunchService): void => {
  // documented, but its body is taken as bytes
  app.openAPIRegistry.registerPath(outputRoute);
  app.post(`${BASE}/launches/:launch/output`, async (context) => {
    const [offset, rank] = ["offset", "rank"].map((name) => Number(context.req.query(name) ?? Number.NaN));
    const stream = context.req.query("stream");
    const id = Number(context.req.param("launch"));
    if (!isCount(offset) || !isCount(rank) || (stream !== "stdout" && stream !== "stderr"))
      throw new SlipwayError("bad-request", { detail: "needs stream (stdout or stderr), rank and offset" });
    const body = (context.req.raw.body ?? []) as unknown as AsyncIterable<Uint8Array>;
    return context.json(await launches.receive(context.get("caller"), id, { stream, rank, offset }, body), 200);
  });
};

export const addLaunches = (app: Api, launches: LaunchService): void => {
  // documented as strictly as it is read; the reader, which knows more, reports what is wrong with it
  app.openAPIRegistry.registerPath(launchRoute);
  app.openapi(
    { ...launchRoute, request: { ...launchRoute.request, body: anyDocument }, hide: true },
    async (context) => {
      const document = withKey(context.req.valid("json"), keyOf(context.req.header(IDEMPOTENCY_KEY)));
      const caller = context.get("caller");
      return context.req.valid("query").dry_run
        ? context.json(await launches.preview(caller, document), 200)
        : context.json(await launches.launch(caller, document), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/launches`,
      summary: "Launches, newest first",
      request: {
        query: z.object({
          state: z.enum(LAUNCH_STATES).optional(),
          limit: wholeOr(100, 1, 10_000),
        }),
      },
      responses: json(z.array(LaunchView), "The caller's launches; the home's owner sees all"),
    }),
    (context) => context.json(launches.list(context.get("caller"), context.req.valid("query")), 200),
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/launches/{launch}`,
      summary: "One launch",
      request: { params: LaunchParams, query: z.object({ fresh: flag }) },
      responses: json(LaunchView, "The launch; with fresh, as the manager sees it", "no-such-launch", ...OF_MANAGERS),
    }),
    async (context) => {
      const { launch } = context.req.valid("param");
      return context.json(await launches.show(context.get("caller"), launch, context.req.valid("query").fresh), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/launches/{launch}/watch`,
      summary: "Follow a launch until it ends",
      request: { params: LaunchParams },
      responses: ndjson(LaunchView, "The launch, each time it changes", "no-such-launch"),
    }),
    async (context) => {
      const abort = new AbortController();
      const { launch } = context.req.valid("param");
      const caller = context.get("caller");
      await launches.show(caller, launch, false);
      return sendLines(context.env.outgoing, launches.watch(caller, launch, abort.signal), abort) as never;
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/launches/{launch}/logs`,
      summary: "What a launch's job wrote",
      request: {
        params: LaunchParams,
        query: z.object({ stream: z.enum(["stdout", "stderr"]).default("stdout"), follow: flag }),
      },
      responses: bytes("no-such-launch"),
    }),
    async (context) => {
      const abort = new AbortController();
      const { launch } = context.req.valid("param");
      const caller = context.get("caller");
      await launches.show(caller, launch, false);
      const query = { ...context.req.valid("query"), signal: abort.signal };
      return sendBytes(context.env.outgoing, launches.logs(caller, launch, query), abort) as never;
    },
  );
  app.openapi(
    createRoute({
      method: "delete",
      path: `${BASE}/launches/{launch}`,
      summary: "Cancel a launch",
      request: { params: LaunchParams },
      responses: json(
        LaunchView,
        "The launch; its state says when it has ended",
        "no-such-launch",
        ...OF_MANAGERS,
        ...OF_CHANGES,
      ),
    }),
    async (context) =>
      context.json(await launches.cancel(context.get("caller"), context.req.valid("param").launch), 200),
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/launches/{launch}/clean`,
      summary: "Remove the directory of a launch that has ended",
      request: { params: LaunchParams },
      responses: json(LaunchView, "The launch", "no-such-launch", "launch-active", "launch-failed", ...OF_CHANGES),
    }),
    async (context) =>
      context.json(await launches.clean(context.get("caller"), context.req.valid("param").launch), 200),
  );
  addOutput(app, launches);
};
