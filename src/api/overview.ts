import { createRoute, z } from "@hono/zod-openapi";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { FleetView, RunView, ServerView, type StatusView } from "./schemas.ts";
import type { NumberService } from "./numbers.ts";
import type { Service } from "./service.ts";

/** What `slipway top` and the page show first. Worked out from sums: it costs the same for a million tasks as for one. */

const Tasks = z.object({
  /** Of runs that have not ended: for their dependencies, for a place, on their way, at work, moving files. */
  waiting: z.number(),
  ready: z.number(),
  starting: z.number(),
  running: z.number(),
  staging: z.number(),
});

const Ended = z.object({ done: z.number(), failed: z.number(), cancelled: z.number() });

export const AmountView = z.object({
  cluster: z.string(),
  resource: z.string(),
  /** Cores, GPUs, bytes. */
  total: z.number(),
  used: z.number(),
});

export const OverviewView = z
  .object({
    server: ServerView,
    tasks: Tasks,
    /** Since this server started: two answers give the throughput. */
    ended: Ended,
    /** What connected agents have, and what tasks hold of it. */
    resources: z.array(AmountView),
    fleets: z.array(
      FleetView.extend({
        /** Pilots that have not begun. */
        pending: z.number(),
        /** When the first of its pilots ends; null when unknown or never. */
        ends: z.string().nullable(),
      }),
    ),
    /** Those that have not ended, and the last few that have. */
    runs: z.array(RunView),
  })
  .openapi("Overview");

export type OverviewView = z.infer<typeof OverviewView>;
export type Sums = Pick<OverviewView, "tasks" | "ended" | "resources">;

export const overviewOf = ({ server, fleets, pilots, runs }: Omit<StatusView, "wraps">, sums: Sums): OverviewView => ({
  server,
  ...sums,
  fleets: fleets.map((fleet) => {
    const ends = pilots
      .filter(({ cluster, queue }) => cluster === fleet.cluster && queue === fleet.queue)
      .flatMap((pilot) => (pilot.ends === null ? [] : [pilot.ends]));
    return { ...fleet, pending: fleet.pilots - fleet.active, ends: ends.toSorted()[0] ?? null };
  }),
  runs,
});

export const addOverview = (app: Api, service: Service, numbers: NumberService): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/overview`,
      summary: "Throughput, tasks by state, what is in use, fleets and runs: what `slipway top` shows",
      responses: json(OverviewView, "The overview"),
    }),
    (context) => context.json(overviewOf(service.status(), numbers.sums()), 200),
  );
