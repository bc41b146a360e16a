import { createRoute, z } from "@hono/zod-openapi";
import { LAUNCH_STATES } from "../core/launch.ts";
import { json, wholeOr } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Caller } from "./caller.ts";
import { JOB_KINDS, type JobKind, JobView } from "./job-schemas.ts";
import type { LaunchService } from "./launch-service.ts";
import { type Page, cursorText, nextHeader, pageOf } from "./pages.ts";
import type { Service } from "./service.ts";

interface JobsQuery {
  readonly kind?: JobKind | undefined;
  readonly state?: (typeof LAUNCH_STATES)[number] | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** The time of ISO texts is their order; what was submitted at the same moment is told apart by its name. */
const keyOf = ({ submitted, kind, id }: JobView): string => `${submitted ?? ""} ${kind} ${id}`;
const newestFirst = (a: JobView, b: JobView): number => (keyOf(a) < keyOf(b) ? 1 : -1);

const jobsOf = (service: Service, launches: LaunchService, caller: Caller, query: JobsQuery): Page<JobView> => {
  const wants = (kind: JobKind): boolean => query.kind === undefined || query.kind === kind;
  const launched: JobView[] = wants("launch")
    ? launches.list(caller, { ...query, limit: Infinity }).map((launch) => ({
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
  const { cursor } = query;
  const meant = [...launched, ...others].filter((job) => cursor === undefined || keyOf(job) < cursor);
  return pageOf(meant.toSorted(newestFirst), query.limit, keyOf);
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
          cursor: cursorText,
        }),
      },
      responses: json(z.array(JobView), "Jobs"),
    }),
    (context) => {
      const { cursor: given, ...query } = context.req.valid("query");
      const { items, next } = jobsOf(service, launches, context.get("caller"), { ...query, cursor: given });
      return context.json(items, 200, nextHeader(next));
    },
  );
