import type { HttpBindings } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Caller } from "./caller.ts";

export interface ApiEnv {
  Bindings: HttpBindings;
  Variables: { caller: Caller };
}

export type Api = OpenAPIHono<ApiEnv>;

/** Where every path of the API begins. */
export const BASE = "/api/v1";

/** In every answer: the server's clock, in epoch milliseconds. */
export const CLOCK_HEADER = "slipway-clock";
