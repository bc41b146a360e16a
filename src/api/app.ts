import { OpenAPIHono, createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { Socket } from "node:net";
import { SlipwayError } from "../errors.ts";
import { sameSecret } from "../protocol/token.ts";
import { json } from "./answers.ts";
import { type Api, type ApiEnv, BASE, CLOCK_HEADER } from "./base.ts";
import { MOST_BODY, MOST_LAUNCH, jsonText, readWhole } from "./bodies.ts";
import { ADMIN, type Caller } from "./caller.ts";
import { addClusters } from "./clusters.ts";
import { addEvents } from "./events.ts";
import { addJobs } from "./jobs.ts";
import type { LaunchService } from "./launch-service.ts";
import { addLaunches } from "./launches.ts";
import { addNumbers, type NumberService } from "./numbers.ts";
import { createAnswers } from "./idempotency.ts";
import { addOverview } from "./overview.ts";
import { PROBLEM_TYPE, problemAnswer, problemOf } from "./problem.ts";
import { addPilots } from "./pilots.ts";
import { ACCESS, accessTo, checkAccess } from "./roles.ts";
import { type RouteTable, bodyType, createRouteTable } from "./route-table.ts";
import { addRuns } from "./runs.ts";
import { addServer } from "./server.ts";
import type { Service } from "./service.ts";
import { addTaskTable } from "./task-table.ts";
import { addTasks } from "./tasks.ts";
import { addValidate } from "./validate.ts";
import { addTokens } from "./tokens.ts";
import { addWhy } from "./why.ts";
import { addWraps } from "./wraps.ts";

/** The REST API. Schemas validate requests and answers' documentation alike; /api/v1/openapi.json is made from them. */

export interface ApiOptions {
  readonly service: Service;
  readonly launches: LaunchService;
  readonly numbers: NumberService;
  readonly token: string;
  readonly version: string;
  /** The server's clock: it does not follow the wall clock. */
  readonly clock: () => number;
  /** Someone at the port has shown a token. */
  readonly onKnown?: (socket: Socket) => void;
  readonly log: (text: string, facts?: object) => void;
}

/** Paths that need no token. */
const ANYONES: ReadonlySet<string> = new Set(
  [...ACCESS].flatMap(([route, { anyone }]) => (anyone === true ? [route.replace("GET ", "")] : [])),
);

export const createApi = ({ service, launches, numbers, token, version, clock, onKnown, log }: ApiOptions): Api => {
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
  const callerOf = (header = ""): Caller | undefined => {
    if (sameSecret(header, `Bearer ${token}`)) return ADMIN;
    return header.startsWith("Bearer ") ? launches.callerOf(header.slice("Bearer ".length)) : undefined;
  };
  app.use("*", async (context, next) => {
    // times in answers are of this clock: with it a client works out how long ago they are
    context.env.outgoing.setHeader(CLOCK_HEADER, String(Math.round(clock())));
    // the unix socket is in a directory that only this user can enter; the port is open to the network
    const { socket } = context.env.incoming;
    const isRemote = "encrypted" in socket;
    const { method, path } = context.req;
    const caller = isRemote ? callerOf(context.req.header("authorization")) : ADMIN;
    if (caller === undefined) {
      if (!ANYONES.has(path)) throw new SlipwayError("unauthorized");
      // anybody may ask whether it lives; nobody keeps a connection for that
      context.header("connection", "close");
      table().find(method, path);
      return next();
    }
    if (isRemote) onKnown?.(socket);
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
    if (known.code === "unauthorized") context.header("connection", "close");
    return context.body(JSON.stringify(problemOf(known)), known.row.http as 500, { "content-type": PROBLEM_TYPE });
  });
  app.notFound((context) => problemAnswer(new SlipwayError("not-found", { what: context.req.path })));
  const answers = createAnswers(clock);
  addNumbers(app, numbers);
  addServer(app, service);
  addOverview(app, service, numbers);
  addRuns(app, service);
  addValidate(app, service);
  addTasks(app, service);
  addTaskTable(app, service);
  addEvents(app, service);
  addPilots(app, service, answers);
  addClusters(app, service);
  addWraps(app, service);
  addLaunches(app, launches);
  addJobs(app, service, launches);
  addWhy(app, service, launches);
  addTokens(app, launches, answers);
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
    const limit = req.path === `${BASE}/launches` ? MOST_LAUNCH : MOST_BODY;
    leave(jsonText(await readWhole(context.env.incoming, limit), "the body") || "{}");
  }
};

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
