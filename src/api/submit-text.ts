import { createRoute, z } from "@hono/zod-openapi";
import { OF_BODIES, OF_CHANGES, json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { IDEMPOTENCY_KEY, IdempotencyHeader, keyOf } from "./idempotency.ts";
import { SubmitAnswer } from "./schemas.ts";
import type { Service } from "./service.ts";

/** Submitting from where the run's files are not: the page. */

export const SubmitTextRequest = z
  .object({
    /** The text of a run file. */
    text: z.string(),
    /** What it is called in messages; a run without a name gets its own from it. */
    file: z.string().min(1).max(4096).default("run.yaml"),
    /** A directory of the server's machine: tasks run there, and files with items are read below it. */
    cwd: z.string().min(1).max(4096),
  })
  .openapi("SubmitTextRequest");

export type SubmitTextRequest = z.infer<typeof SubmitTextRequest>;

export const addSubmitText = (app: Api, service: Pick<Service, "submitText">): void =>
  void app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/run-files`,
      summary: "Submit a run by the text of its file",
      description:
        "As the page does it. The environment of its tasks is the server's, after what the file's `export` leaves of it; files with items are read on the server's machine, below `cwd` only. `POST /validate` with the same text and `cwd` says first what is wrong, line by line.",
      request: {
        headers: IdempotencyHeader,
        body: { content: { "application/json": { schema: SubmitTextRequest } }, required: true },
      },
      responses: json(
        SubmitAnswer,
        "The run's id",
        "bad-file",
        "bad-value",
        "unknown-key",
        "unknown-placeholder",
        "unknown-task",
        "cycle",
        "no-such-file",
        "too-large",
        "too-many-tasks",
        "no-such-cluster",
        "no-such-run",
        "cannot-fit",
        "stopping",
        "journal-waits",
        "uuid-taken",
        ...OF_BODIES,
        ...OF_CHANGES,
      ),
    }),
    async (context) => {
      const key = keyOf(context.req.header(IDEMPOTENCY_KEY));
      return context.json(await service.submitText(context.req.valid("json"), key), 200);
    },
  );
