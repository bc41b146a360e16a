import { createRoute, z } from "@hono/zod-openapi";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { WrapView } from "./schemas.ts";
import type { Service } from "./service.ts";

export const addWraps = (app: Api, service: Service): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/wraps`,
      summary: "Wrappers of this home, which hold Dask clusters with or without a server",
      responses: json(z.array(WrapView), "Wrappers"),
    }),
    async (context) => context.json(await service.wraps(), 200),
  );
