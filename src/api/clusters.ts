import { createRoute, z } from "@hono/zod-openapi";
import { SlipwayError } from "../errors.ts";
import { json } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import { CheckView, ClusterView } from "./schemas.ts";
import type { Service } from "./service.ts";

export const addClusters = (app: Api, service: Service): void => {
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/clusters`,
      summary: "Configured clusters",
      responses: json(z.array(ClusterView), "Clusters"),
    }),
    (context) => context.json(service.clusters(), 200),
  );
  app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/clusters/{name}`,
      summary: "One cluster",
      request: { params: z.object({ name: z.string().max(200) }) },
      responses: json(ClusterView, "The cluster", "no-such-cluster"),
    }),
    (context) => {
      const { name } = context.req.valid("param");
      const found = service.clusters().find((cluster) => cluster.name === name);
      if (found === undefined) throw new SlipwayError("no-such-cluster", { name });
      return context.json(found, 200);
    },
  );
  app.openapi(
    createRoute({
      method: "post",
      path: `${BASE}/clusters/{name}/check`,
      summary: "Check a cluster's configuration without running work",
      request: { params: z.object({ name: z.string().max(200) }) },
      responses: json(
        CheckView,
        "What was found, and what to fix",
        "no-such-cluster",
        "bad-file",
        "no-such-file",
        "clusters-in-use",
      ),
    }),
    async (context) => context.json(await service.checkCluster(context.req.valid("param").name), 200),
  );
};
