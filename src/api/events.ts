import { createRoute, z } from "@hono/zod-openapi";
import { flag, ndjson } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { EventView } from "./schemas.ts";
import type { Service } from "./service.ts";
import { sendLines } from "./streams.ts";

export const addEvents = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/events`,
      summary: "What happened, and with follow what happens",
      description: "A reader that is too slow is dropped with a last line {resume: seq}: go on with since=seq.",
      request: {
        query: z.object({
          follow: flag,
          run: z.coerce.number().int().nonnegative().optional(),
          since: z.coerce.number().int().nonnegative().default(0),
        }),
      },
      responses: ndjson(EventView, "One event per line"),
    }),
    async (context) => {
      const { follow, run, since } = context.req.valid("query");
      if (run !== undefined) await service.run(run);
      const abort = new AbortController();
      return sendLines(context.env.outgoing, service.events({ follow, run, since }, abort.signal), abort) as never;
    },
  );
};
