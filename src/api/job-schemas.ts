import { z } from "zod";
import { LAUNCH_STATES } from "../core/launch.ts";
import { LaunchView } from "./launch-schemas.ts";

/** What Slipway has in workload managers. Fields may be added; those here keep their meaning. */

const time = z.string().nullable();

export const JOB_KINDS = ["launch", "task", "pilot"] as const;

/** The job of one task. */
export const TaskJobView = z.object({
  cluster: z.string(),
  queue: z.string(),
  /** Its name in the manager. */
  name: z.string(),
  nativeId: z.string().nullable(),
  /** `requested`: the manager has not answered yet; `queued`: it waits there. */
  state: z.enum(["requested", "queued", "running", "ended"]),
  /** What the manager says while it waits or is suspended: its own words, and what they mean. */
  says: z.string().nullable(),
  reason: z.string().nullable(),
  /** Which element of an array it is, counted from 1. */
  array: z.object({ element: z.number(), of: z.number() }).nullable(),
  /** Its script, and what the job itself printed. */
  directory: z.string(),
  requested: time,
});

/** Common to all kinds. A number as `id` is a launch, `3.17` a task, `pilot 4` a pilot. */
export const OtherJobView = z.object({
  kind: z.enum(["task", "pilot"]),
  id: z.string(),
  name: z.string(),
  state: z.enum(LAUNCH_STATES),
  cluster: z.string(),
  queue: z.string(),
  jobName: z.string(),
  nativeId: z.string().nullable(),
  /** What the manager says while it waits, else why it is in this state. */
  reason: z.string().nullable(),
  submitted: time,
  /** When it came into this state. */
  since: time,
});

export const JobView = z.union([LaunchView.extend({ kind: z.literal("launch"), since: time }), OtherJobView]);

/** Tasks that are jobs of their own, of one queue. */
export const TaskJobsView = z.object({
  cluster: z.string(),
  queue: z.string(),
  /** Tasks that wait in Slipway for their turn. */
  waiting: z.number(),
  /** Jobs that wait in the manager, and those that have begun. */
  queued: z.number(),
  running: z.number(),
  /** Why nothing is submitted there now. */
  problem: z.string().nullable(),
});

export type JobKind = (typeof JOB_KINDS)[number];
export type TaskJobView = z.infer<typeof TaskJobView>;
export type OtherJobView = z.infer<typeof OtherJobView>;
export type JobView = z.infer<typeof JobView>;
export type TaskJobsView = z.infer<typeof TaskJobsView>;
