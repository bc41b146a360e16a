import { createRoute, z } from "@hono/zod-openapi";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { PilotView } from "./schemas.ts";
import type { Service } from "./service.ts";

export const addPilots = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/pilots`,
      summary: "Pilots with their agents",
      responses: json(z.array(PilotView), "Pilots"),
    }),
    (context) => context.json(service.pilots(), 200),
  );
};
