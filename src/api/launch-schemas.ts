import { ROLES } from "./caller.ts";
import { z } from "zod";
import { LAUNCH_STATES } from "../core/launch.ts";

/** Shapes of launches in the REST API and in `--json`. Fields may be added; those here keep their meaning. */

const time = z.string().nullable();

export const LaunchView = z.object({
  id: z.number(),
  name: z.string(),
  type: z.string(),
  state: z.enum(LAUNCH_STATES),
  cluster: z.string(),
  /** In whose name it runs. */
  user: z.string(),
  /** The job in the manager: its name, and its id as soon as that is known. */
  jobName: z.string(),
  nativeId: z.string().nullable(),
  /** The manager's own words. */
  managerState: z.string().nullable(),
  reason: z.string().nullable(),
  exitCode: z.number().nullable(),
  signal: z.number().nullable(),
  hosts: z.array(z.string()),
  pool: z.string(),
  slots: z.number(),
  nodes: z.number(),
  image: z.string().nullable(),
  command: z.array(z.string()),
  /** What was rounded, replaced or assumed. */
  notes: z.array(z.string()),
  /** Its directory while it is there: script, staged files, logs. */
  directory: z.string().nullable(),
  submitted: time,
  started: time,
  finished: time,
  /** The informative part of its error log when it did not succeed. */
  errorLog: z.string().nullable(),
  cancelledBy: z.string().nullable(),
  /** How much of each log the server has, in bytes. */
  output: z.object({ stdout: z.number(), stderr: z.number(), live: z.boolean() }),
});

/** What would be submitted. */
export const LaunchPreview = z.object({
  script: z.string(),
  /** The command that would submit it, as words. */
  submit: z.array(z.string()),
  warnings: z.array(z.string()),
});

export const OutputAnswer = z.object({
  /** How many bytes of this stream the server has: continue from here. */
  size: z.number(),
});

/** `role` is null for a user of this machine, who may use their own launches. */
export const TokenView = z.object({ user: z.string(), role: z.enum(ROLES).nullable().optional(), made: time });
/** Shown once: the server keeps only its hash. */
export const NewToken = z.object({
  user: z.string(),
  role: z.enum(ROLES).nullable().optional(),
  token: z.string(),
  /** A file with the server's address that the user can read; the server writes it again at every start. */
  endpointFile: z.string().nullable(),
  endpoint: z.object({ host: z.string(), addresses: z.array(z.string()), port: z.number(), keyPin: z.string() }),
});
export const TokenRequest = z.object({
  /** A user of this machine; with a role, any name. */
  user: z.string().min(1).max(64),
  role: z.enum(ROLES).optional(),
});

export type LaunchView = z.infer<typeof LaunchView>;
export type LaunchPreview = z.infer<typeof LaunchPreview>;
export type TokenView = z.infer<typeof TokenView>;
export type NewToken = z.infer<typeof NewToken>;
