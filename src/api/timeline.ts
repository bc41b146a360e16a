import { createRoute, z } from "@hono/zod-openapi";
import { TASK_STATES } from "../core/states.ts";
import { RunParams, json, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Service } from "./service.ts";
import { sendText } from "./streams.ts";

/** When tasks ran, and where: bars on lanes, in columns of equal length. */

export const MOST_BARS = 100_000;

const column = z.array(z.number());

export const TimelineView = z
  .object({
    /** When the run began; times below are milliseconds since then. Null: nothing has begun. */
    began: z.string().nullable(),
    /** Until when the timeline goes now: the end of the run, or the present. */
    until: z.number(),
    from: z.number(),
    to: z.number(),
    /** Bars of all attempts between `from` and `to`, before any were folded. */
    bars: z.number(),
    /** Neighbours on a lane were folded into one: `count` and `failed` are there. */
    folded: z.boolean(),
    /**
     * A place where one task runs at a time; on a host as many as were ever in use at once. Only those with bars. `of` is
     * how many lanes are drawn as one, from this one on: more than 1 only if there are more lanes than bars asked for.
     */
    lanes: z.array(z.object({ host: z.string(), slot: z.number(), of: z.number() })),
    lane: column,
    start: column,
    /** -1 while it runs. */
    end: column,
    /** The task's number in the run; of a fold, of its first. */
    task: column,
    /** Which attempt of it. */
    attempt: column,
    /** A place in `states`: of the task, of an attempt before its last FAILED; of a fold, FAILED if any failed. */
    state: column,
    states: z.array(z.enum(TASK_STATES)),
    /** The number of the task's group. */
    group: column,
    count: column.optional(),
    failed: column.optional(),
  })
  .openapi("Timeline");

export type TimelineView = z.infer<typeof TimelineView>;

export interface TimelineQuery {
  /** Milliseconds since the run began. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly most: number;
}

export const addTimeline = (app: Api, service: Pick<Service, "timeline">): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/timeline`,
      summary: "When its tasks ran, and where: bars on lanes, as columns",
      description:
        "`from` and `to` are milliseconds since the run began. More than `most` bars are folded: neighbours on a lane become one, with a count.",
      request: {
        params: RunParams,
        query: z.object({
          from: wholeQuery().optional(),
          to: wholeQuery().optional(),
          most: wholeOr(MOST_BARS, 100, MOST_BARS),
        }),
      },
      responses: json(TimelineView, "Columns", "no-such-run"),
    }),
    async (context) => {
      const { from, to, most } = context.req.valid("query");
      const abort = new AbortController();
      const pieces = await service.timeline(context.req.valid("param").run, { from, to, most }, abort.signal);
      return sendText(context.env.outgoing, "application/json", pieces, abort) as never;
    },
  );
