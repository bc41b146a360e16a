import { createRoute, z } from "@hono/zod-openapi";
import { LAUNCH_STATES } from "../core/launch.ts";
import { SlipwayError } from "../errors.ts";
import { json, whole } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { JOB_KINDS } from "./job-schemas.ts";
import type { LaunchService } from "./launch-service.ts";
import { PilotView } from "./schemas.ts";
import type { Service } from "./service.ts";

/** One pilot, one job of any kind: where it stands, since when, what the manager says, its script and its output. */

/** Texts longer than this are cut, in front or behind as is said of each. */
export const MOST_TEXT = 64 * 1024;

/** A state it was in, from when, and for how long; the last one until now, unless nothing comes after it. */
export const StayView = z
  .object({ state: z.string(), at: z.string().nullable(), seconds: z.number().nullable() })
  .openapi("Stay");

/** What its manager says. */
export const SaysView = z
  .object({
    /** In its own words; null: it says nothing. */
    words: z.string().nullable(),
    /** What that means, and what would help. */
    plain: z.string().nullable(),
    remedy: z.string().nullable(),
  })
  .openapi("Says");

const detailShape = {
  /** Its name in the manager. */
  jobName: z.string(),
  /** The states it has gone through, in order. */
  history: z.array(StayView),
  /** What was submitted; null: it is not there any more. Cut behind. */
  script: z.string().nullable(),
  says: SaysView,
  /** The end of what the job itself printed; null: nothing, or it is not there any more. */
  outputTail: z.string().nullable(),
  /** Why it was asked for, in a sentence; null: an earlier version asked for it. */
  decision: z.string().nullable(),
};

export const PilotDetail = PilotView.extend(detailShape).openapi("PilotDetail");

export const JobDetail = z
  .object({
    kind: z.enum(JOB_KINDS),
    id: z.string(),
    name: z.string(),
    state: z.enum(LAUNCH_STATES),
    cluster: z.string(),
    /** Null: a launch names a pool. */
    queue: z.string().nullable(),
    nativeId: z.string().nullable(),
    reason: z.string().nullable(),
    submitted: z.string().nullable(),
    started: z.string().nullable(),
    finished: z.string().nullable(),
    hosts: z.array(z.string()),
    exitCode: z.number().nullable(),
    command: z.array(z.string()).nullable(),
    /** What was asked for, as the launch's spec or the task's resources have it. */
    spec: z.record(z.string(), z.unknown()),
    /** Ranks and where they are; empty where there is one process. */
    ranks: z.array(z.object({ host: z.string().nullable(), ranks: z.number() })),
    /** The directory with its script, staged files and logs. */
    directory: z.string().nullable(),
    ...detailShape,
  })
  .openapi("JobDetail");

export type StayView = z.infer<typeof StayView>;
export type SaysView = z.infer<typeof SaysView>;
export type PilotDetail = z.infer<typeof PilotDetail>;
export type JobDetail = z.infer<typeof JobDetail>;

/** A launch by its number, a task by its name, a pilot after its word. */
export const JOB_ID = /^([0-9]{1,15}|[0-9]{1,15}\.[0-9]{1,15}|pilot [0-9]{1,15})$/;

const JobParams = z.object({
  job: z
    .string()
    .max(40)
    .regex(JOB_ID, "must be a launch (2), a task (3.17) or a pilot (pilot 4)")
    .openapi({ param: { name: "job", in: "path" }, example: "3.17" }),
});

export const addJobDetails = (app: Api, service: Service, launches: LaunchService): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/pilots/{pilot}`,
      summary:
        "One pilot: its states and the time in each, its script, what its manager says, and why it was asked for",
      request: { params: z.object({ pilot: whole("pilot") }) },
      responses: json(PilotDetail, "The pilot", "no-such-pilot"),
    }),
    async (context) => context.json(await service.pilot(context.req.valid("param").pilot), 200),
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/jobs/{job}`,
      summary: "One job of any kind: its states and the time in each, its script, what its manager says, its output",
      description:
        "`2` is a launch, `3.17` the job of a task, `pilot 4` a pilot. A user with a token may ask about their own launches.",
      request: { params: JobParams },
      responses: json(
        JobDetail,
        "The job",
        "no-such-job",
        "no-such-launch",
        "no-such-run",
        "no-such-task",
        "no-such-pilot",
      ),
    }),
    async (context) => {
      const { job } = context.req.valid("param");
      const caller = context.get("caller");
      if (/^[0-9]+$/.test(job)) return context.json(await launches.detail(caller, Number(job)), 200);
      // runs and pilots are the home's owner's
      if (caller.kind !== "admin" && caller.kind !== "role") throw new SlipwayError("no-such-job", { job });
      return context.json(await service.job(job), 200);
    },
  );
};
