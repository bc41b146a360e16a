import { SlipwayError, SlipwayErrors } from "../errors.ts";
import type { Excerpt } from "./excerpt.ts";

/** All that is wrong with a document, so that its writer hears of everything at once. */
export interface Problems {
  /** Reads one part; a problem is kept, and the answer is then undefined. */
  take<T>(read: () => T): T | undefined;
  add(problem: SlipwayError): void;
  readonly found: readonly SlipwayError[];
  /** Throws what was found: one problem as it is, several together. */
  end(): void;
}

/** More than this nobody reads. */
const MOST_PROBLEMS = 100;

/** In the order of the file; what has no place there comes as it was found, at the end. */
const byPlace = (a: SlipwayError, b: SlipwayError): number => {
  const [one, other] = [a, b].map(({ facts }) => facts["at"] as Excerpt | undefined);
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return one.file === other.file ? one.line - other.line || one.column - other.column : 0;
};

/** `before`: what is known already. */
export const createProblems = (before: readonly SlipwayError[] = []): Problems => {
  const found: SlipwayError[] = [];
  const seen = new Set<string>();

  const add = (problem: SlipwayError): void => {
    for (const each of problem instanceof SlipwayErrors ? problem.all : [problem]) {
      // a default that is wrong is wrong in each task
      if (found.length >= MOST_PROBLEMS || seen.has(each.message)) continue;
      seen.add(each.message);
      found.push(each);
    }
  };

  for (const each of before) add(each);

  return {
    found,
    add,
    take: (read) => {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof SlipwayError)) throw error;
        add(error);
        return undefined;
      }
    },
    end: () => {
      found.sort(byPlace);
      if (found.length === 1) throw found[0]!;
      if (found.length > 1) throw new SlipwayErrors(found);
    },
  };
};
