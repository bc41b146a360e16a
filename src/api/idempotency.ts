import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { SlipwayError } from "../errors.ts";

/**
 * The header Idempotency-Key: a UUID that makes a request safe to send again. Of runs and launches it is the uuid, which
 * the journal keeps for as long as the run or the launch; what else is created is answered again for 24 hours, while
 * this server lives.
 */
export const IDEMPOTENCY_KEY = "idempotency-key";

const KEPT_MS = 24 * 3_600_000;
const MOST_KEPT = 10_000;

/** For the description of a route. */
export const IdempotencyHeader = z.object({
  [IDEMPOTENCY_KEY]: z
    .uuid({ error: "must be a UUID" })
    .optional()
    .openapi({ description: "The same key and the same request: the same answer, and nothing is created twice." }),
});

const Key = z.uuid();

/** The key of a request; undefined: it has none. */
export const keyOf = (header: string | undefined): string | undefined => {
  if (header === undefined) return undefined;
  if (!Key.safeParse(header).success)
    throw new SlipwayError("bad-request", { detail: "Idempotency-Key: must be a UUID" });
  return header;
};

/** A document with the key as its uuid. */
export const withKey = (document: unknown, key: string | undefined): unknown => {
  if (key === undefined || typeof document !== "object" || document === null || Array.isArray(document))
    return document;
  const { uuid } = document as { readonly uuid?: unknown };
  if (uuid !== undefined && uuid !== key)
    throw new SlipwayError("bad-request", { detail: "Idempotency-Key and the uuid of the document differ" });
  return { ...document, uuid: key };
};

/** The same for what comes line by line: the first is the document. */
export const firstWithKey = (values: AsyncIterable<unknown>, key: string | undefined): AsyncIterable<unknown> =>
  key === undefined ? values : changeFirst(values, key);

async function* changeFirst(values: AsyncIterable<unknown>, key: string): AsyncGenerator<unknown> {
  let isFirst = true;
  for await (const value of values) {
    yield isFirst ? withKey(value, key) : value;
    isFirst = false;
  }
}

interface Kept {
  readonly digest: string;
  readonly answer: Promise<unknown>;
  readonly until: number;
}

export interface Answers {
  /** What `make` gives, or gave for the same key; `of` says which route and who asks. */
  once<T>(key: string | undefined, of: string, request: unknown, make: () => Promise<T>): Promise<T>;
}

export const createAnswers = (clock: () => number): Answers => {
  // in order of arrival
  const kept = new Map<string, Kept>();
  const forgetOld = (now: number): void => {
    for (const [name, { until }] of kept) {
      if (until > now && kept.size < MOST_KEPT) return;
      kept.delete(name);
    }
  };
  return {
    once: async <T>(key: string | undefined, of: string, request: unknown, make: () => Promise<T>): Promise<T> => {
      if (key === undefined) return make();
      const now = clock();
      forgetOld(now);
      const name = JSON.stringify([of, key]);
      const digest = createHash("sha256").update(JSON.stringify(request)).digest("base64");
      const known = kept.get(name);
      if (known !== undefined && known.digest !== digest) throw new SlipwayError("key-reused", { key });
      if (known !== undefined) return known.answer as Promise<T>;
      const answer = make();
      kept.set(name, { digest, answer, until: now + KEPT_MS });
      // what was refused may be tried again
      answer.catch(() => kept.delete(name));
      return answer;
    },
  };
};
