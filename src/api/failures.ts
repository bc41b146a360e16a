import { createRoute, z } from "@hono/zod-openapi";
import { RunParams, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { WhyView } from "./schemas.ts";
import type { Service } from "./service.ts";

/** What went wrong in a run, alike with alike. */

export const MOST_FAILURE_GROUPS = 100;

export const FailureGroup = z
  .object({
    exitCode: z.number().nullable(),
    signal: z.string().nullable(),
    reason: z.string().nullable(),
    /** The last line that the first of them wrote to stderr, cut; null: nothing, or nobody has looked (`read`). */
    lastLine: z.string().nullable(),
    /** Whether their output was looked at: of very many only of some. */
    read: z.boolean(),
    count: z.number(),
    /** The first of them. */
    tasks: z.array(z.object({ id: z.string(), index: z.number(), name: z.string() })),
    /** Of the first of them, as `slipway why` says it. */
    why: WhyView,
  })
  .openapi("FailureGroup");

export const FailuresView = z
  .object({
    run: z.number(),
    /** Tasks that failed. */
    failed: z.number(),
    /** Most frequent first. Lines that differ in numbers alone count as alike. */
    groups: z.array(FailureGroup),
    /** Groups beyond these, and the tasks in them. */
    more: z.object({ groups: z.number(), tasks: z.number() }),
  })
  .openapi("Failures");

export type FailureGroup = z.infer<typeof FailureGroup>;
export type FailuresView = z.infer<typeof FailuresView>;

export const addFailures = (app: Api, service: Pick<Service, "failures">): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/failures`,
      summary: "Its failed tasks, grouped by how they ended and the last line of their stderr",
      request: { params: RunParams },
      responses: json(FailuresView, "Groups", "no-such-run"),
    }),
    async (context) => context.json(await service.failures(context.req.valid("param").run), 200),
  );
