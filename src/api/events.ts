import { createRoute, z } from "@hono/zod-openapi";
import { flag, ndjson, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { EventView } from "./schemas.ts";
import type { Service } from "./service.ts";
import { sendLines } from "./streams.ts";

const EventOrResume = z.union([EventView, z.object({ resume: z.number() })]);

/** The seq of the last one is the `since` of the next page. */
async function* firstOf<T>(source: AsyncIterable<T>, most: number): AsyncGenerator<T> {
  let left = most;
  for await (const each of source) {
    yield each;
    left -= 1;
    if (left === 0) return;
  }
}

export const addEvents = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/events`,
      summary: "What happened, and with follow what happens next",
      description:
        "Without since and time, follow begins now. The server drops a reader that is too slow, with a last line {resume: seq}: continue with since=seq.",
      request: {
        query: z.object({
          follow: flag,
          run: wholeQuery().optional(),
          /** Only events after this number; without it and `time`: all that are remembered, with `follow` none. */
          since: wholeQuery().optional(),
          /** Only events from this time on. */
          time: z.iso.datetime({ offset: true }).optional(),
          limit: wholeQuery(1).optional(),
        }),
      },
      responses: ndjson(EventOrResume, "One event per line", "no-such-run"),
    }),
    async (context) => {
      const { follow, run, since, time, limit = Infinity } = context.req.valid("query");
      if (run !== undefined) await service.run(run);
      const abort = new AbortController();
      const from = time === undefined ? undefined : Date.parse(time);
      const events = service.events({ follow, run, since, time: from }, abort.signal);
      return sendLines(context.env.outgoing, limit === Infinity ? events : firstOf(events, limit), abort) as never;
    },
  );
};
