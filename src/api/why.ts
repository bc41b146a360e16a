import { createRoute, z } from "@hono/zod-openapi";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { LaunchService } from "./launch-service.ts";
import { NamedWhyView } from "./schemas.ts";
import type { Service } from "./service.ts";

/** Launches are looked for among these: the newest. */
const MOST_LAUNCHES = 10_000;

export const addWhy = (app: Api, service: Service, launches: LaunchService): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/why`,
      summary: "Why something is not running, or why it failed",
      description:
        "`of` is a run (3), a task (3.17), a fleet (hpc/cpu), a cluster (hpc), or a kind and a name: `pilot 4`, `launch 2`, `job 1234` (a job by its manager's id or its name there), `fleet hpc/cpu`, `cluster hpc`. A user with a token may ask about their own launches.",
      request: { query: z.object({ of: z.string().min(1).max(400) }) },
      responses: json(
        NamedWhyView,
        "Cause, detail, remedy",
        "no-such-thing",
        "ambiguous",
        "no-such-run",
        "no-such-task",
      ),
    }),
    async (context) => {
      const caller = context.get("caller");
      const mine = launches.list(caller, { limit: MOST_LAUNCHES });
      return context.json(
        await service.whyNamed(context.req.valid("query").of, mine, caller.kind === "admin" || caller.kind === "role"),
        200,
      );
    },
  );
