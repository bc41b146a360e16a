import { createRoute, z } from "@hono/zod-openapi";
import { PILOT_STATES } from "../core/states.ts";
import { OF_BODIES, OF_CHANGES, json, whole, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { nextHeader, pageOf } from "./pages.ts";
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
      summary: "Pilots with their agents, in the order of their numbers",
      description: "The header slipway-next of the answer is the cursor of the next page; it is absent at the end.",
      request: {
        query: z.object({
          limit: wholeOr(1_000_000, 1, 1_000_000),
          cursor: wholeQuery().optional(),
          state: z.enum(PILOT_STATES).optional(),
          cluster: z.string().max(200).optional(),
          queue: z.string().max(200).optional(),
        }),
      },
      responses: json(z.array(PilotView), "Pilots"),
    }),
    (context) => {
      const { limit, cursor = 0, state, cluster, queue } = context.req.valid("query");
      const meant = service
        .pilots()
        .filter(
          (pilot) =>
            Number(pilot.id) > cursor &&
            (state ?? pilot.state) === pilot.state &&
            (cluster ?? pilot.cluster) === pilot.cluster &&
            (queue ?? pilot.queue) === pilot.queue,
        );
      const { items, next } = pageOf(meant, limit, ({ id }) => id);
      return context.json(items, 200, nextHeader(next));
    },
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
