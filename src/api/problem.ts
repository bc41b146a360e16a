import type { SlipwayError } from "../errors.ts";

/** Errors as RFC 9457 has them, with Slipway's own members; `error` is the shape of `--json`, and stays throughout v1. */
export const PROBLEM_TYPE = "application/problem+json";

export const problemOf = (error: SlipwayError) => ({
  type: `urn:slipway:error:${error.code}`,
  // the same for every error of this code
  title: error.code.replaceAll("-", " "),
  status: error.row.http,
  detail: error.message,
  code: error.code,
  hint: error.hint,
  facts: error.facts,
  ...error.toJSON(),
});

/** An answer of this kind. */
export const problemAnswer = (error: SlipwayError): Response =>
  new Response(JSON.stringify(problemOf(error)), {
    status: error.row.http,
    headers: { "content-type": PROBLEM_TYPE },
  });
