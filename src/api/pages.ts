import { z } from "@hono/zod-openapi";

/**
 * Lists come page by page: the header `slipway-next` of an answer is the `cursor` of the next page, and is absent at the
 * end. A cursor names the last one of its page, so what comes or goes meanwhile neither repeats nor hides anything.
 */
export const NEXT_HEADER = "slipway-next";

export const cursorText = z
  .string()
  .max(300)
  .optional()
  .openapi({ description: "The header slipway-next of the page before this one" });

export interface Page<T> {
  readonly items: T[];
  /** Undefined: this was the last page. */
  readonly next: string | undefined;
}

/** The first of what is left, without looking at more than one beyond. */
export const pageOf = <T>(items: Iterable<T>, limit: number, keyOf: (item: T) => string): Page<T> => {
  const page: T[] = [];
  for (const item of items) {
    if (page.length === limit) return { items: page, next: keyOf(page.at(-1)!) };
    page.push(item);
  }
  return { items: page, next: undefined };
};

export const nextHeader = (next: string | undefined): Record<string, string> =>
  next === undefined ? {} : { [NEXT_HEADER]: encodeURIComponent(next) };
