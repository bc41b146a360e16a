import { createRoute, z } from "@hono/zod-openapi";
import { OF_BODIES, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { ReloadView, ServerView, StatusView, StopRequest } from "./schemas.ts";
import type { Service } from "./service.ts";

export const addServer = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/server`,
      summary: "The server itself",
      responses: json(ServerView, "Who answers"),
    }),
    (context) => context.json(service.server(), 200),
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/status`,
      summary: "Server, fleets, pilots, runs and Dask clusters at a glance",
      responses: json(StatusView, "One screen"),
    }),
    async (context) => context.json({ ...service.status(), wraps: await service.wraps() }, 200),
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/server/stop`,
      summary: "Let running tasks end, then stop; `now` cancels pilots first, `idle` stops only if no run is live",
      request: { body: { content: { "application/json": { schema: StopRequest } }, required: false } },
      responses: json(z.object({ state: z.string() }), "It has begun to stop", ...OF_BODIES),
    }),
    (context) => {
      const { now = false, idle = false } = context.req.valid("json") ?? {};
      return context.json(service.stop(now, idle), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/server/compact`,
      summary: "Fold the journal into a snapshot now",
      responses: json(z.object({ compacted: z.boolean() }), "It is done"),
    }),
    async (context) => {
      await service.compact();
      return context.json({ compacted: true }, 200);
    },
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/server/reload`,
      summary: "Read clusters.yaml and its layers again",
      description:
        "The server does so by itself when a file changes. Pilots and jobs that live keep what they were started with; a queue that something still needs cannot go. When the files cannot be taken over, everything stays as it was.",
      responses: json(
        ReloadView,
        "What is other than before",
        "bad-file",
        "bad-value",
        "unknown-key",
        "no-such-file",
        "clusters-in-use",
      ),
    }),
    async (context) => context.json(await service.reloadClusters(), 200),
  );
};
