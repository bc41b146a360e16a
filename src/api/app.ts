import { OpenAPIHono } from "@hono/zod-openapi";
import type { Socket } from "node:net";
import { SlipwayError } from "../errors.ts";
import { sameSecret } from "../protocol/token.ts";
import { type Api, type ApiEnv, BASE, CLOCK_HEADER } from "./base.ts";
import { ADMIN, type Caller, checkPath } from "./caller.ts";
import { addClusters } from "./clusters.ts";
import { addEvents } from "./events.ts";
import type { LaunchService } from "./launch-service.ts";
import { addLaunches } from "./launches.ts";
import { addPilots } from "./pilots.ts";
import { addRuns } from "./runs.ts";
import { addServer } from "./server.ts";
import type { Service } from "./service.ts";
import { addTasks } from "./tasks.ts";
import { addTokens } from "./tokens.ts";

/** The REST API. Schemas validate requests and answers' documentation alike; /api/v1/openapi.json is made from them. */

export interface ApiOptions {
  readonly service: Service;
  readonly launches: LaunchService;
  readonly token: string;
  readonly version: string;
  /** The server's clock: it does not follow the wall clock. */
  readonly clock: () => number;
  /** Somebody at the port has shown a token. */
  readonly onKnown?: (socket: Socket) => void;
  readonly log: (text: string, facts?: object) => void;
}

export const createApi = ({ service, launches, token, version, clock, onKnown, log }: ApiOptions): Api => {
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
  const callerOf = (header = ""): Caller | undefined => {
    if (sameSecret(header, `Bearer ${token}`)) return ADMIN;
    return header.startsWith("Bearer ") ? launches.callerOf(header.slice("Bearer ".length)) : undefined;
  };
  app.use("*", async (context, next) => {
    // times in answers are of this clock: by it a client tells how long ago they are
    context.env.outgoing.setHeader(CLOCK_HEADER, String(Math.round(clock())));
    // the unix socket lies in a directory of this user alone; the port is open to the network
    const { socket } = context.env.incoming;
    const isRemote = "encrypted" in socket;
    const caller = isRemote ? callerOf(context.req.header("authorization")) : ADMIN;
    if (caller === undefined) throw new SlipwayError("unauthorized");
    if (isRemote) onKnown?.(socket);
    checkPath(caller, context.req.method, context.req.path);
    context.set("caller", caller);
    await next();
  });
  app.onError((error, context) => {
    const known =
      error instanceof SlipwayError ? error : new SlipwayError("internal", { detail: error.message }, error);
    if (known.code === "internal") log(`${context.req.method} ${context.req.path}: ${error.stack ?? error.message}`);
    // whatever else a stranger sends is not read
    if (known.code === "unauthorized") context.header("connection", "close");
    return context.json(known.toJSON(), known.row.http as 500);
  });
  app.notFound((context) => context.json(new SlipwayError("not-found", { what: context.req.path }).toJSON(), 404));
  addServer(app, service);
  addRuns(app, service);
  addTasks(app, service);
  addEvents(app, service);
  addPilots(app, service);
  addClusters(app, service);
  addLaunches(app, launches);
  addTokens(app, launches);
  app.doc31(`${BASE}/openapi.json`, { openapi: "3.1.0", info: { title: "Slipway", version } });
  return app;
};
