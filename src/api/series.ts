import { createRoute, z } from "@hono/zod-openapi";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";

/** How things went, in columns of equal length: kept in the server's memory since its start, in rings of fixed size. */

export const SPANS = ["10m", "1h", "1d", "7d"] as const;
export type Span = (typeof SPANS)[number];

const column = z.array(z.number());

export const SeriesView = z
  .object({
    span: z.enum(SPANS),
    /** Seconds of a step. */
    step: z.number(),
    /** When each step ended, in epoch milliseconds; the last one is still going on. */
    time: column,
    /** Tasks that ended in the step. */
    done: column,
    failed: column,
    cancelled: column,
    /** At the end of the step: tasks of runs that have not ended. */
    running: column,
    waiting: column,
    ready: column,
    /** At the end of the step: what connected agents have, and what tasks hold of it. */
    coresUsed: column,
    coresTotal: column,
    gpusUsed: column,
    gpusTotal: column,
  })
  .openapi("Series");

export type SeriesView = z.infer<typeof SeriesView>;

export interface SeriesService {
  series(span: Span): SeriesView;
}

export const addSeries = (app: Api, service: SeriesService): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/series`,
      summary: "Ends, tasks by state, cores and GPUs over time",
      description:
        "Since this server started and for as long as `span` says; a step without an answer of the server is not there.",
      request: { query: z.object({ span: z.enum(SPANS).default("1h") }) },
      responses: json(SeriesView, "Columns"),
    }),
    (context) => context.json(service.series(context.req.valid("query").span), 200),
  );
