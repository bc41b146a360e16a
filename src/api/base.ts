import type { HttpBindings } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";

export interface ApiEnv {
  Bindings: HttpBindings;
}

export type Api = OpenAPIHono<ApiEnv>;

/** Where every path of the API begins. */
export const BASE = "/api/v1";
