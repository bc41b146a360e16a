import { createRoute, z } from "@hono/zod-openapi";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Service } from "./service.ts";

export const WrapView = z
  .object({
    id: z.string(),
    target: z.string().openapi({ description: "MODULE::SYMBOL" }),
    state: z.enum(["starting", "running", "closing", "lost"]).openapi({
      description: "`lost`: its process is gone without a word; `slipway wrap down` ends what it left",
    }),
    statusFile: z.string(),
    host: z.string(),
    pid: z.int(),
    started: z.string(),
    address: z.string().nullable(),
    dashboardPort: z.int().nullable(),
    minimum: z.int(),
    maximum: z.int(),
    work: z.int().openapi({ description: "Tasks that run or could run" }),
    clients: z.int(),
    workers: z.array(z.object({ name: z.string(), address: z.string(), threads: z.int(), memory: z.number() })),
    jobs: z.array(z.object({ id: z.string(), connected: z.boolean() })),
    problem: z.string().nullable(),
  })
  .openapi("Wrap");
export type WrapView = z.infer<typeof WrapView>;

export const addWraps = (app: Api, service: Service): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/wraps`,
      summary: "Wrappers of this home, which hold Dask clusters with or without a server",
      responses: json(z.array(WrapView), "Wrappers"),
    }),
    async (context) => context.json(await service.wraps(), 200),
  );
