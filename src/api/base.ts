import type { HttpBindings } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Caller } from "./caller.ts";

/** Through which a request came: the unix socket, the TLS port, or the listener that `slipway open` opens for browsers. */
export type Door = "socket" | "port" | "page";

export interface ApiEnv {
  /** Without a door it is the port, which trusts nobody. */
  Bindings: HttpBindings & { door?: Door };
  Variables: { caller: Caller };
}

export type Api = OpenAPIHono<ApiEnv>;

/** Where every path of the API begins. */
export const BASE = "/api/v1";

/** In every answer: the server's clock, in epoch milliseconds. */
export const CLOCK_HEADER = "slipway-clock";
