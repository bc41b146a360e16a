import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, type ErrorCode } from "../errors.ts";
import { OF_BODIES, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Service } from "./service.ts";

/** Looking at a run without submitting it. */

export const ValidateRequest = z
  .object({
    /** The text of a run file: problems have lines. */
    text: z.string().optional(),
    /** What the text is called in messages. */
    file: z.string().min(1).max(4096).default("run.yaml"),
    /** Or a run as a request would carry it. */
    document: z.record(z.string(), z.unknown()).optional(),
    /** Where relative paths start; the document's own comes first. */
    cwd: z.string().max(4096).default("/"),
  })
  .openapi("ValidateRequest");

const ProblemView = z.object({
  code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  /** What to do, or to write. */
  hint: z.string(),
  /** In the text, counted from 1; null where it has no place there. */
  line: z.number().nullable(),
  column: z.number().nullable(),
  /** The line itself. */
  text: z.string().nullable(),
});

const GroupPreviewView = z.object({
  name: z.string(),
  /** Null: its items are in a file that the server does not read. */
  tasks: z.number().nullable(),
  after: z.array(z.string()),
  cluster: z.string(),
  type: z.string(),
  /** The queues it may go to. */
  queues: z.array(z.string()),
  via: z.enum(["pilot", "job"]),
  resources: z.record(z.string(), z.number()),
  /** Amounts that depend on the item or the attempt, as written. */
  formulas: z.record(z.string(), z.string()),
  ranks: z.number().nullable(),
  timeLimit: z.number().nullable(),
  /** The first three tasks, placeholders filled in. */
  first: z.array(
    z.object({ task: z.number(), item: z.string().nullable(), command: z.array(z.string()), cwd: z.string() }),
  ),
  /** Only of a group with outputs whose files were looked at: which tasks would be skipped, and why the others run. */
  skips: z
    .object({
      skipped: z.number(),
      runs: z.array(z.object({ kind: z.string(), tasks: z.number(), task: z.number(), reason: z.string() })),
    })
    .optional(),
});

export const ValidateAnswer = z
  .object({
    valid: z.boolean(),
    errors: z.array(ProblemView),
    /** What would run; null where there are errors. */
    plan: z
      .object({
        name: z.string(),
        tasks: z.number().nullable(),
        groups: z.array(GroupPreviewView),
        notices: z.array(z.string()),
      })
      .nullable(),
  })
  .openapi("ValidateAnswer");

export const addValidate = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/validate`,
      summary: "Check a run without submitting it",
      description:
        "All errors at once, by line where the text of a file is given; else how many tasks, what they ask for, where they would run and the first commands.",
      request: { body: { content: { "application/json": { schema: ValidateRequest } }, required: true } },
      responses: json(ValidateAnswer, "What is wrong, or what would run", ...OF_BODIES),
    }),
    (context) => context.json(service.validate(context.req.valid("json")) as z.infer<typeof ValidateAnswer>, 200),
  );
};
