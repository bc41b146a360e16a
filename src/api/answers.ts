import { z } from "@hono/zod-openapi";

/** Pieces that every route's description shares. */

const ErrorBody = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      hint: z.string(),
      facts: z.record(z.string(), z.unknown()),
    }),
  })
  .openapi("Error");

export const json = <S extends z.ZodType>(schema: S, description: string) => ({
  200: { description, content: { "application/json": { schema } } },
  default: {
    description: "What is wrong; docs/errors.md lists the codes",
    content: { "application/json": { schema: ErrorBody } },
  },
});

export const ndjson = <S extends z.ZodType>(schema: S, description: string) => ({
  200: { description, content: { "application/x-ndjson": { schema } } },
  default: { description: "What is wrong", content: { "application/json": { schema: ErrorBody } } },
});

export const whole = (name: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .openapi({ param: { name, in: "path" }, type: "integer", example: 3 });

export const RunParams = z.object({ run: whole("run") });
export const TaskParams = z.object({ run: whole("run"), task: whole("task") });
export const attemptNumber = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, "must be the number of an attempt, from 1")
  .transform(Number)
  .optional()
  .openapi({ type: "integer", minimum: 1, maximum: 99_999, example: 1 });
export const flag = z
  .enum(["0", "1", "false", "true"])
  .optional()
  .transform((text) => text === "1" || text === "true");
