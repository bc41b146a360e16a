import { createRoute, z } from "@hono/zod-openapi";
import { LAUNCH_STATES } from "../core/launch.ts";
import { json, wholeOr } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Caller } from "./caller.ts";
import { JOB_KINDS, type JobKind, JobView } from "./job-schemas.ts";
import type { LaunchService } from "./launch-service.ts";
import type { Service } from "./service.ts";

interface JobsQuery {
  readonly kind?: JobKind | undefined;
  readonly state?: (typeof LAUNCH_STATES)[number] | undefined;
  readonly limit: number;
}

/** The time of ISO texts is their order. */
const newestFirst = (a: JobView, b: JobView): number => ((a.submitted ?? "") < (b.submitted ?? "") ? 1 : -1);

const jobsOf = (service: Service, launches: LaunchService, caller: Caller, query: JobsQuery): JobView[] => {
  const wants = (kind: JobKind): boolean => query.kind === undefined || query.kind === kind;
  const launched: JobView[] = wants("launch")
    ? launches.list(caller, query).map((launch) => ({
        ...launch,
        kind: "launch",
        since: launch.finished ?? launch.started ?? launch.submitted,
      }))
    : [];
  // runs and pilots are the home's owner's
  const others = (["task", "pilot"] as const)
    .filter((kind) => (caller.kind === "admin" || caller.kind === "role") && wants(kind))
    .flatMap((kind) => service.jobs(kind))
    .filter(({ state }) => query.state === undefined || query.state === state);
  return [...launched, ...others].toSorted(newestFirst).slice(0, query.limit);
};

export const addJobs = (app: Api, service: Service, launches: LaunchService): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/jobs`,
      summary: "What Slipway has in workload managers, newest first",
      description:
        "Jobs of tasks and pilots while their manager has them, and launches, also those that have ended. A number as id is a launch, 3.17 a task, `pilot 4` a pilot. A user with a token sees their own launches only.",
      request: {
        query: z.object({
          kind: z.enum(JOB_KINDS).optional(),
          state: z.enum(LAUNCH_STATES).optional(),
          limit: wholeOr(100, 1, 10_000),
        }),
      },
      responses: json(z.array(JobView), "Jobs"),
    }),
    (context) => context.json(jobsOf(service, launches, context.get("caller"), context.req.valid("query")), 200),
  );
