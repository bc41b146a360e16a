import { OpenAPIHono, createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { SlipwayError } from "../errors.ts";
import { json } from "./answers.ts";
import { type Api, type ApiEnv, BASE, CLOCK_HEADER } from "./base.ts";
import { MOST_BODY, MOST_LAUNCH, MOST_SIGN_IN, jsonText, readWhole } from "./bodies.ts";
import { addClusters } from "./clusters.ts";
import type { Entrance } from "./entrance.ts";
import { addEvents } from "./events.ts";
import { addFailures } from "./failures.ts";
import { addJobDetails } from "./job-details.ts";
import { addJobs } from "./jobs.ts";
import type { LaunchService } from "./launch-service.ts";
import { addLaunches } from "./launches.ts";
import { addLive } from "./live.ts";
import type { LiveService } from "./live-service.ts";
import { addNumbers, type NumberService } from "./numbers.ts";
import { createAnswers } from "./idempotency.ts";
import { addOverview } from "./overview.ts";
import { PROBLEM_TYPE, problemAnswer, problemOf } from "./problem.ts";
import { addPilots } from "./pilots.ts";
import { accessTo, checkAccess, isAnyones } from "./roles.ts";
import { type RouteTable, bodyType, createRouteTable } from "./route-table.ts";
import { addRuns } from "./runs.ts";
import { type SeriesService, addSeries } from "./series.ts";
import { addServer } from "./server.ts";
import { addSession } from "./session.ts";
import type { Service } from "./service.ts";
import { addStages } from "./stages.ts";
import { addSubmitText } from "./submit-text.ts";
import { addTaskTable } from "./task-table.ts";
import { addTasks } from "./tasks.ts";
import { addTimeline } from "./timeline.ts";
import { addOutputs } from "./outputs.ts";
import { addValidate } from "./validate.ts";
import { addTokens } from "./tokens.ts";
import { addWhy } from "./why.ts";
import { addWraps } from "./wraps.ts";

/** The REST API. Schemas validate requests and answers' documentation alike; /api/v1/openapi.json is made from them. */

export interface ApiOptions {
  readonly service: Service;
  readonly launches: LaunchService;
  readonly numbers: NumberService;
  readonly live: LiveService;
  readonly series: SeriesService;
  readonly entrance: Entrance;
  readonly version: string;
  /** The server's clock: it does not follow the wall clock. */
  readonly clock: () => number;
  /** Someone at the port has shown a token. */
  readonly onKnown?: (socket: Socket) => void;
  readonly log: (text: string, facts?: object) => void;
}

/** Of every answer: it is data for who asked, never a page, and nobody else's. */
const GUARDS: readonly (readonly [string, string])[] = [
  ["x-content-type-options", "nosniff"],
  ["referrer-policy", "no-referrer"],
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["cross-origin-resource-policy", "same-origin"],
];

export const createApi = (options: ApiOptions): Api => {
  const { service, launches, numbers, entrance, version, clock, onKnown, log } = options;
  const app: Api = new OpenAPIHono<ApiEnv>({
    defaultHook: (result) => {
      if (!result.success) {
        const [issue] = result.error.issues;
        throw new SlipwayError("bad-request", {
          detail: `${issue?.path.join(".") ?? "request"}: ${issue?.message ?? "not valid"}`,
        });
      }
    },
  });
  let found: RouteTable | undefined;
  const table = (): RouteTable =>
    (found ??= createRouteTable(
      app.openAPIRegistry.definitions.flatMap((each) => (each.type === "route" ? [each.route] : [])),
    ));
  app.use("*", async (context, next) => {
    // times in answers are of this clock: with it a client works out how long ago they are
    context.env.outgoing.setHeader(CLOCK_HEADER, String(Math.round(clock())));
    for (const [name, value] of GUARDS) context.env.outgoing.setHeader(name, value);
    const { incoming, outgoing, door = "port" } = context.env;
    const { method, path } = context.req;
    const admitted = entrance.admit(incoming as IncomingMessage, outgoing as ServerResponse, door);
    if (admitted.caller === undefined) {
      const anyones = isAnyones(method, path);
      if (anyones === undefined) throw admitted.refused;
      // anybody may ask whether it lives, under any name
      if (anyones !== "alive" && admitted.misled !== undefined) throw admitted.misled;
      // nobody keeps a connection for that
      context.header("connection", "close");
      await takeBody(context, bodyType(incoming as IncomingMessage, table().find(method, path)));
      return next();
    }
    const { caller } = admitted;
    if (door !== "socket") onKnown?.(incoming.socket as Socket);
    const route = table().find(method, path);
    checkAccess(caller, accessTo(method, route.template), path);
    context.set("caller", caller);
    await takeBody(context, bodyType(context.env.incoming, route));
    await next();
  });
  app.onError((error, context) => {
    const known = knownError(error);
    if (known.code === "internal") log(`${context.req.method} ${context.req.path}: ${error.stack ?? error.message}`);
    if (known.code === "wrong-method") context.header("allow", String(known.facts["allow"]));
    // whatever else a stranger sends is not read
    if (STRANGERS.has(known.code)) context.header("connection", "close");
    if (known.code === "too-many-requests") context.header("retry-after", "2");
    return context.body(JSON.stringify(problemOf(known)), known.row.http as 500, { "content-type": PROBLEM_TYPE });
  });
  app.notFound((context) => problemAnswer(new SlipwayError("not-found", { what: context.req.path })));
  const answers = createAnswers(clock);
  addNumbers(app, numbers);
  addServer(app, service);
  addOverview(app, service, numbers);
  addLive(app, options.live);
  addSeries(app, options.series);
  addRuns(app, service);
  addSubmitText(app, service);
  addValidate(app, service);
  addOutputs(app, service);
  addTasks(app, service);
  addTaskTable(app, service);
  addStages(app, service);
  addTimeline(app, service);
  addFailures(app, service);
  addEvents(app, service);
  addPilots(app, service, answers);
  addClusters(app, service);
  addWraps(app, service);
  addLaunches(app, launches);
  addJobs(app, service, launches);
  addJobDetails(app, service, launches);
  addWhy(app, service, launches);
  addTokens(app, launches, answers);
  addSession(app, entrance, answers);
  addDocument(app, version);
  return app;
};

/** The document that describes all this is one of the things that it describes. */
const addDocument = (app: Api, version: string): void => {
  const route = createRoute({
    method: "get",
    path: `${BASE}/openapi.json`,
    summary: "This API as an OpenAPI 3.1 document",
    responses: json(z.looseObject({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) }), "The document"),
  });
  app.openAPIRegistry.registerPath(route);
  app.openAPIRegistry.registerComponent("securitySchemes", "token", {
    type: "http",
    scheme: "bearer",
    description: "Required on the port; whoever reaches the unix socket needs none",
  });
  app.get(route.path, (context) =>
    context.json(
      app.getOpenAPI31Document({ openapi: "3.1.0", info: { title: "Slipway", version }, security: [{ token: [] }] }),
      200,
    ),
  );
};

/** JSON is read here, bounded, and left for the schema of its route. Other types are read as they come, by their route. */
const takeBody = async (context: Context<ApiEnv>, type: string | undefined): Promise<void> => {
  const { req } = context;
  if (STREAMED.test(req.path)) return;
  // typed as text, kept and awaited as a promise of it
  const leave = (text: string): void => void (req.bodyCache.text = Promise.resolve(text) as never);
  if (type === undefined) leave("{}");
  else if (type === "application/json") {
    const limit =
      req.path === `${BASE}/launches` ? MOST_LAUNCH : context.get("caller") === undefined ? MOST_SIGN_IN : MOST_BODY;
    leave(jsonText(await readWhole(context.env.incoming, limit), "the body") || "{}");
  }
};

/** What strangers are answered. */
const STRANGERS: ReadonlySet<string> = new Set([
  "unauthorized",
  "no-session",
  "sign-in-refused",
  "host-refused",
  "too-many-requests",
]);

/** Bodies of any length: they are processed in pieces. */
const STREAMED = new RegExp(`^${BASE}/(runs|launches/[^/]+/output)$`);

const knownError = (error: Error): SlipwayError => {
  if (error instanceof SlipwayError) return error;
  // what the schemas' library says of a body that is not JSON
  if (error instanceof HTTPException && error.status === 400)
    return new SlipwayError("bad-request", { detail: "the body is not JSON" }, error);
  if (error instanceof HTTPException && error.status === 415)
    return new SlipwayError("media-type", { given: "this content-type", types: "application/json" }, error);
  return new SlipwayError("internal", { detail: error.message }, error);
};
