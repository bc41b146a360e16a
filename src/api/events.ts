import { createRoute, z } from "@hono/zod-openapi";
import { flag, ndjson, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { EventView } from "./schemas.ts";
import type { Service } from "./service.ts";
import { sendLines } from "./streams.ts";

const EventOrResume = z.union([EventView, z.object({ resume: z.number() })]);

export const addEvents = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/events`,
      summary: "What happened, and with follow what happens next",
      description:
        "The server drops a reader that is too slow, with a last line {resume: seq}: continue with since=seq.",
      request: {
        query: z.object({
          follow: flag,
          run: wholeQuery().optional(),
          since: wholeOr(0),
        }),
      },
      responses: ndjson(EventOrResume, "One event per line", "no-such-run"),
    }),
    async (context) => {
      const { follow, run, since } = context.req.valid("query");
      if (run !== undefined) await service.run(run);
      const abort = new AbortController();
      return sendLines(context.env.outgoing, service.events({ follow, run, since }, abort.signal), abort) as never;
    },
  );
};
