import { createRoute, z } from "@hono/zod-openapi";
import { OF_BODIES, OF_CHANGES, json, whole } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { AddPilotsRequest, PilotRequest, PilotView } from "./schemas.ts";
import { nameOf } from "./caller.ts";
import { type Answers, IDEMPOTENCY_KEY, IdempotencyHeader, keyOf } from "./idempotency.ts";
import type { Service } from "./service.ts";

const PilotParams = z.object({ pilot: whole("pilot", 1) });
const pilotBody = { content: { "application/json": { schema: PilotRequest } }, required: false } as const;

export const addPilots = (app: Api, service: Service, answers: Answers): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/pilots`,
      summary: "Pilots with their agents",
      responses: json(z.array(PilotView), "Pilots"),
    }),
    (context) => context.json(service.pilots(), 200),
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/pilots`,
      summary: "Start pilots by hand",
      request: {
        headers: IdempotencyHeader,
        body: { content: { "application/json": { schema: AddPilotsRequest } }, required: false },
      },
      responses: json(
        z.array(PilotView),
        "The pilots that were requested",
        "no-such-cluster",
        "no-such-queue",
        "stopping",
        "key-reused",
        ...OF_BODIES,
        ...OF_CHANGES,
      ),
    }),
    async (context) => {
      const asked = context.req.valid("json") ?? { count: 1 };
      const of = `pilots ${nameOf(context.get("caller"))}`;
      const key = keyOf(context.req.header(IDEMPOTENCY_KEY));
      return context.json(await answers.once(key, of, asked, () => service.addPilots(asked)), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/pilots/{pilot}/drain`,
      summary: "Let a pilot finish what it runs, then end it",
      request: { params: PilotParams, body: pilotBody },
      responses: json(PilotView, "The pilot", "no-such-pilot", ...OF_BODIES, ...OF_CHANGES),
    }),
    async (context) =>
      context.json(
        await service.drainPilot(
          context.req.valid("param").pilot,
          context.req.valid("json")?.reason ?? "drained by the user",
        ),
        200,
      ),
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/pilots/{pilot}/cancel`,
      summary: "End a pilot now; its tasks run again at no cost",
      request: { params: PilotParams, body: pilotBody },
      responses: json(PilotView, "The pilot", "no-such-pilot", ...OF_BODIES, ...OF_CHANGES),
    }),
    async (context) =>
      context.json(
        await service.cancelPilot(
          context.req.valid("param").pilot,
          context.req.valid("json")?.reason ?? "cancelled by the user",
        ),
        200,
      ),
  );
};
