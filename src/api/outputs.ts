import { createRoute, z } from "@hono/zod-openapi";
import { OF_BODIES, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Service } from "./service.ts";

/** What is remembered of files that tasks declare as their outputs. */

/** So many of the longest fit into a body. */
export const MOST_FILES_ASKED = 100;

const KnownRequest = z
  .object({ files: z.array(z.string().min(1).max(8192)).max(MOST_FILES_ASKED) })
  .openapi("KnownOutputsRequest");

const KnownOutput = z
  .object({
    /** What the task did that made it, in 16 hex digits: equal for equal work. */
    fingerprint: z.string(),
    /** Counted, not timed: when that task began and succeeded, among all of them. 0: the last one to begin has not succeeded. */
    began: z.number(),
    ended: z.number(),
  })
  .openapi("KnownOutput");

export const KnownAnswer = z
  .object({
    /** In the order of the files; null: nothing is remembered. */
    known: z.array(KnownOutput.nullable()),
  })
  .openapi("KnownOutputs");

export type KnownOutputs = z.infer<typeof KnownAnswer>;

export const addOutputs = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/outputs/known`,
      summary: "What is remembered of files",
      description:
        "For files that tasks declare as outputs, by absolute path: what the last task did that was to make them. With it a client can tell which tasks of a run would be skipped.",
      request: { body: { content: { "application/json": { schema: KnownRequest } }, required: true } },
      responses: json(KnownAnswer, "What is known of each", ...OF_BODIES),
    }),
    (context) => context.json(service.knownOutputs(context.req.valid("json").files), 200),
  );
};
