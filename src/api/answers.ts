import { z } from "@hono/zod-openapi";
import { PROBLEM_TYPE } from "./problem.ts";
import { ERRORS, type ErrorCode } from "../errors.ts";

/** Pieces that every route's description shares. */

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

const ErrorBody = z
  .object({
    type: z.string().openapi({ example: "urn:slipway:error:no-such-run" }),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.enum(CODES),
    hint: z.string(),
    facts: z.record(z.string(), z.unknown()),
    /** As `--json` prints it; the same as above. */
    error: z.object({
      code: z.enum(CODES),
      message: z.string(),
      hint: z.string(),
      facts: z.record(z.string(), z.unknown()),
    }),
  })
  .openapi("Error");

/** What any request may be answered. */
const ALWAYS = [
  "bad-request",
  "unauthorized",
  "no-session",
  "forbidden",
  "origin-refused",
  "host-refused",
  "too-many-requests",
  "internal",
] as const;
/** What else a request with a body may be answered. */
export const OF_BODIES = ["media-type", "too-large", "busy"] as const;
/** What may be answered where the journal is written. */
export const OF_CHANGES = ["journal-full", "journal-failed"] as const;

/** The errors of a route, by their status; docs/errors.md says what each code means. */
export const errors = (codes: readonly ErrorCode[]) => {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set<ErrorCode>([...ALWAYS, ...codes])) {
    const { http } = ERRORS[code];
    byStatus.set(http, [...(byStatus.get(http) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [
      status,
      { description: `\`${of.join("`, `")}\``, content: { [PROBLEM_TYPE]: { schema: ErrorBody } } },
    ]),
  );
};

export const json = <S extends z.ZodType>(schema: S, description: string, ...codes: readonly ErrorCode[]) => ({
  200: { description, content: { "application/json": { schema } } },
  ...errors(codes),
});

export const ndjson = <S extends z.ZodType>(schema: S, description: string, ...codes: readonly ErrorCode[]) => ({
  200: { description, content: { "application/x-ndjson": { schema } } },
  ...errors(codes),
});

/** One document, or the same as the first of many lines. */
export const jsonOrLines = <S extends z.ZodType, L extends z.ZodType>(
  schema: S,
  line: L,
  description: string,
  ...codes: readonly ErrorCode[]
) => ({
  200: {
    description,
    content: { "application/json": { schema }, "application/x-ndjson": { schema: z.union([schema, line]) } },
  },
  ...errors(codes),
});

export const bytes = (...codes: readonly ErrorCode[]) => ({
  200: { description: "The bytes, as written", content: { "application/octet-stream": { schema: z.string() } } },
  ...errors(codes),
});

/** The largest number that can be written in a path or a query. */
const MOST = 10 ** 15 - 1;

/** A whole number in a path or a query, where everything is text: digits and nothing else. */
const wholeText = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`)
    .openapi({ type: "integer", minimum: min, maximum: max });

export const whole = (name: string, min = 0) =>
  wholeText(min, MOST).openapi({ param: { name, in: "path" }, type: "integer", example: 1 });

export const wholeQuery = (min = 0, max = MOST) => wholeText(min, max);

/** A whole number that has a default. */
export const wholeOr = (preset: number, min = 0, max = MOST) =>
  wholeText(min, max)
    .optional()
    .transform((value) => value ?? preset)
    .openapi({ type: "integer", minimum: min, maximum: max, default: preset });

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
