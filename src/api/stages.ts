import { createRoute, z } from "@hono/zod-openapi";
import { RunParams, json, wholeOr, wholeQuery } from "./answers.ts";
import { type Api, BASE } from "./base.ts";
import type { Service } from "./service.ts";

/** A run's graph as people can see it: its groups with counts, or where there are too many, folds of them. */

/** More groups than this are folded; so is what one answer tells. */
export const MOST_STAGES = 200;

export const StageView = z
  .object({
    /** Of a group: its number in the run; of a fold: what `level` opens. */
    index: z.number(),
    kind: z.enum(["group", "fold"]),
    name: z.string(),
    /** How far from the beginning it is: 1 waits for nothing in this run; of a fold, its first. */
    level: z.number(),
    /** Stages that this one waits for, by index; at most 200. */
    after: z.array(z.number()),
    total: z.number(),
    /** Tasks per state, states without tasks left out. */
    counts: z.record(z.string(), z.number()),
    seconds: z.object({
      /** What those that are done took, in the middle (of up to 500 of them, evenly spread); null: none is. */
      p50: z.number().nullable(),
      /** What one that is to come is expected to take; null: nothing is known. */
      expected: z.number().nullable(),
    }),
    /** The numbers of the first and the last of its tasks. */
    first: z.number(),
    last: z.number(),
    /** How many groups it stands for: 1 unless it is a fold. */
    groups: z.number(),
  })
  .openapi("Stage");

export const StagesView = z.object({
  stages: z.array(StageView),
  /** The run has too many groups to show them: `stages` are folds, by how far from the beginning they are. */
  folded: z.boolean(),
});

/** With `level`: the groups of that fold; `next` is the cursor of the page behind, null at the end. */
export const StagePage = StagesView.extend({ next: z.number().nullable() }).openapi("StagePage");

export type StageView = z.infer<typeof StageView>;
export type StagesView = z.infer<typeof StagesView>;
export type StagePage = z.infer<typeof StagePage>;

export interface StageQuery {
  readonly level: number | undefined;
  readonly cursor: number | undefined;
  readonly limit: number;
}

export const addStages = (app: Api, service: Pick<Service, "stages">): void =>
  void app.openapi(
    createRoute({
      method: "get",
      path: `${BASE}/runs/{run}/stages`,
      summary: "A run's graph by stages: its groups with counts, and what each waits for",
      description:
        "A run of more than 200 groups is told in folds of groups that are equally far from the beginning; `level` opens a fold, page by page.",
      request: {
        params: RunParams,
        query: z.object({
          level: wholeQuery().optional(),
          cursor: wholeQuery().optional(),
          limit: wholeOr(MOST_STAGES, 1, 10_000),
        }),
      },
      responses: json(StagePage, "Stages", "no-such-run"),
    }),
    async (context) => {
      const { level, cursor, limit } = context.req.valid("query");
      return context.json(await service.stages(context.req.valid("param").run, { level, cursor, limit }), 200);
    },
  );
