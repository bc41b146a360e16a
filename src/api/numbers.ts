import { createRoute, z } from "@hono/zod-openapi";
import { CONTENT_TYPE } from "../metrics/families.ts";
import { errors, json } from "./answers.ts";
import type { Sums } from "./overview.ts";
import type { Api } from "./base.ts";

/** What programs of operators ask: numbers for Prometheus, and whether the server lives and takes work. */
export interface NumberService {
  /** In Prometheus' text format. */
  text(): string;
  sums(): Sums;
  /** Why it takes no work now, or null. */
  unready(): string | null;
}

export const addNumbers = (app: Api, numbers: NumberService): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: "/metrics",
      summary: "Numbers for Prometheus",
      description: "docs/metrics.md explains each. The token of a Prometheus has the role `read`.",
      responses: {
        200: { description: "Prometheus' text format", content: { "text/plain": { schema: z.string() } } },
        ...errors([]),
      },
    }),
    (context) =>
      context.body(numbers.text(), 200, { "content-type": CONTENT_TYPE, "cache-control": "no-store" }) as never,
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      summary: "Whether the server answers; needs no token",
      security: [],
      responses: json(z.object({ alive: z.literal(true) }), "It does"),
    }),
    (context) => context.json({ alive: true as const }, 200),
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/readyz",
      summary: "Whether it takes work now; needs no token",
      security: [],
      responses: {
        ...json(z.object({ ready: z.boolean(), reason: z.string().nullable() }), "It does"),
        503: {
          description: "It does not: it is starting or stopping, or its disk is full",
          content: { "application/json": { schema: z.object({ ready: z.boolean(), reason: z.string().nullable() }) } },
        },
      },
    }),
    (context) => {
      const reason = numbers.unready();
      return context.json({ ready: reason === null, reason }, reason === null ? 200 : 503);
    },
  );
};
