import { createRoute, z } from "@hono/zod-openapi";
import { errors, json, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { LiveService } from "./live-service.ts";
import { OverviewView } from "./overview.ts";
import { EventView, RunView } from "./schemas.ts";
import { StagesView } from "./stages.ts";
import { sendFrames } from "./streams.ts";

/** What happens, as it happens, for many who look: what goes to all of them is made once. */

/** The server's epoch, the number of the last event that was told, and of the last look that found a change. */
export const LIVE_ID = /^[0-9]{1,9}-[0-9]{1,15}-[0-9]{1,15}$/;

/** A run that somebody watches. */
export const LiveRun = StagesView.extend({ run: RunView }).openapi("LiveRun");

/** Load everything again: `reason` says why. */
export const LiveReset = z.object({ reason: z.enum(["another-server", "too-far-behind"]) });

export const LiveEvent = z
  .union([
    z.object({ event: z.literal("overview"), data: OverviewView }),
    z.object({ event: z.literal("run"), data: LiveRun }),
    z.object({ event: z.literal("event"), data: EventView }),
    z.object({ event: z.literal("reset"), data: LiveReset }),
  ])
  .openapi("LiveEvent");

/** An event of the stream; its data is JSON, of the shape that belongs to its name. */
const LiveFrame = z
  .object({ id: z.string(), event: z.enum(["overview", "run", "event", "reset"]), data: z.string() })
  .openapi("LiveFrame");

export const LiveNext = z.object({ id: z.string(), events: z.array(LiveEvent) }).openapi("LiveNext");

export type LiveRun = z.infer<typeof LiveRun>;
export type LiveReset = z.infer<typeof LiveReset>;
export type LiveEvent = z.infer<typeof LiveEvent>;
export type LiveNext = z.infer<typeof LiveNext>;

const liveId = z.string().max(45).regex(LIVE_ID, "must be an id that live has told");

const LiveParams = z.object({
  run: wholeQuery().optional().openapi({ description: "Tells of this run and its stages, too" }),
  after: liveId.optional().openapi({ description: "Goes on after this id, without gap or repeat of events" }),
});

const StreamParams = LiveParams.extend({
  seconds: wholeQuery(0, 604_800)
    .optional()
    .openapi({ description: "The stream ends after so long; 0: with the present" }),
});

const STREAMED =
  "Events `overview` ([Overview](#overview), at most once a second and only when something has changed), `run` ([LiveRun](#liverun), of the run that is asked for), `event` ([EventView](#eventview): failures, losses, pilots and runs; successes only as counts in the others) and `reset` (the viewer was too far behind, or the server is another: load everything again). Each has an id; the header Last-Event-ID, or `after`, goes on behind it. A comment comes every 10 s. A viewer that does not read is dropped; it goes on with its last id.";

export const addLive = (app: Api, live: LiveService): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/live`,
      summary: "What happens, as Server-Sent Events",
      description: STREAMED,
      request: { query: StreamParams },
      responses: {
        200: { description: "The stream", content: { "text/event-stream": { schema: LiveFrame } } },
        ...errors(["no-such-run", "too-many-viewers"]),
      },
    }),
    async (context) => {
      const { run, after: asked, seconds: given } = context.req.valid("query");
      const told = context.req.header("last-event-id");
      // what a browser sends by itself counts more than the address it began with; anything else was not told here
      const after = told !== undefined && LIVE_ID.test(told) ? told : asked;
      const { outgoing, incoming } = context.env;
      const seconds = incoming.method === "HEAD" ? 0 : given;
      return (await sendFrames(outgoing, (viewer) => live.open({ run, after }, viewer), seconds)) as never;
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/live/next`,
      summary: "The same events by asking again and again, where a proxy holds streams back",
      description:
        "Without `after` it answers at once with how things are; with it, when something has happened, or after 25 s with no events. Ask again with the answer's id.",
      request: { query: LiveParams },
      responses: json(LiveNext, "What happened since", "no-such-run", "too-many-viewers"),
    }),
    async (context) => {
      const { run, after } = context.req.valid("query");
      const abort = new AbortController();
      context.env.outgoing.once("close", () => abort.abort());
      return context.json(await live.next({ run, after }, abort.signal), 200);
    },
  );
};
