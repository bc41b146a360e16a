import type { z } from "zod";
import { quoted } from "../core/quantities.ts";
import { pathText, refuse, valueAt, type Path, type Source } from "./source.ts";
import { quoteThis } from "./excerpt.ts";
import { suggest } from "./nearest.ts";
import { createProblems, type Problems } from "./problems.ts";

/** Adds what is known about a misplaced key, such as where it belongs. Undefined: suggest a similar key. */
export type KeyHint = (key: string, path: Path) => string | undefined;

interface Issue {
  readonly code?: string | undefined;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly errors?: readonly (readonly Issue[])[];
}

const kindOf = (value: unknown): string =>
  value === null || value === undefined
    ? "nothing"
    : Array.isArray(value)
      ? "a list"
      : typeof value === "object"
        ? "a map"
        : typeof value === "string"
          ? quoted(value)
          : String(value);

/** A union fails as a whole; when one of its branches had the right kind, the problem inside that one is meant. */
const innermost = (issue: Issue): Issue => {
  const inside = issue.errors?.flatMap((branch) => branch.slice(0, 1)).find((inner) => inner.path.length > 0);
  return inside === undefined ? issue : innermost({ ...inside, path: [...issue.path, ...inside.path] });
};

/** The problems to report. Where one key is missing and another unknown, the unknown one was meant to be it. */
const toReport = (all: readonly Issue[], value: unknown): Issue[] => {
  const issues = all.map(innermost);
  const isMeant = (missing: Issue): boolean => {
    const parent = missing.path.slice(0, -1);
    if (missing.path.length === 0 || valueAt(value, missing.path as Path) !== undefined) return false;
    const beside = (issue: Issue): boolean =>
      issue.code === "unrecognized_keys" &&
      issue.path.length === parent.length &&
      issue.path.every((step, i) => step === parent[i]);
    return issues.some(beside);
  };
  return issues.filter((issue) => !isMeant(issue));
};

/** Problems are kept, and what is right is read on: whoever gives this must end them. */
export interface Collected {
  readonly problems: Problems;
  /** Stands for a value that must be there; undefined: the key is left out. */
  readonly instead: (path: Path) => unknown;
  /** What is left must not look like another mistake. */
  readonly mend: (value: unknown) => void;
}

/** The keys a strict map at a path may have. */
export type KeysAt = (path: Path) => readonly string[];

/**
 * Checks a value against a schema. All problems are thrown, each with its place: an unknown key with the nearest known
 * one, anything else as `bad-value`.
 */
export const checkShape = <S extends z.ZodType>(
  schema: S,
  value: unknown,
  source: Source,
  keysAt: KeysAt,
  hint: KeyHint = () => undefined,
  collected?: Collected,
): z.output<S> => {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = collected?.problems ?? createProblems();
  const wrong: Path[] = [];
  for (const issue of toReport(result.error.issues as readonly Issue[], value)) {
    const path = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step));
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys!) {
        wrong.push([...path, key]);
        const suggestion = hint(key, path) ?? suggest(key, keysAt(path));
        problems.take(() =>
          refuse("unknown-key", source, path, { ...source.locate([...path, key], "key"), key, suggestion }),
        );
      }
      continue;
    }
    wrong.push(path);
    const found = valueAt(value, path);
    const missing = found === undefined && path.length > 0;
    const detail = missing ? `is missing; it ${issue.message}` : `${issue.message}, not ${kindOf(found)}`;
    const remedy = missing ? `Add ${pathText(path.slice(-1))} and try again.` : remedyFor(source, path, found);
    problems.take(() => refuse("bad-value", source, path, { detail, remedy }));
  }
  const rest = collected === undefined ? undefined : schema.safeParse(without(value, wrong, collected));
  if (rest?.success === true) return rest.data;
  problems.end();
  throw new RangeError("a value without its shape, and nothing wrong with it");
};

/** A copy without what is wrong, so that the rest can be looked at too. */
const without = (value: unknown, wrong: readonly Path[], { instead, mend }: Collected): unknown => {
  const copy = structuredClone(value);
  for (const path of wrong) {
    const parent = valueAt(copy, path.slice(0, -1));
    const key = path.at(-1);
    if (typeof parent !== "object" || parent === null || key === undefined) continue;
    const other = instead(path);
    if (other !== undefined) (parent as Record<string | number, unknown>)[key] = other;
    else if (!Array.isArray(parent)) delete (parent as Record<string | number, unknown>)[key];
  }
  mend(copy);
  return copy;
};

/** `run: {item}` is a map to YAML: what was meant is text. */
const remedyFor = (source: Source, path: Path, found: unknown): string => {
  const { at } = source.locate(path);
  const quote = at !== undefined && typeof found === "object" ? quoteThis(at.text) : undefined;
  return quote ?? "Correct the value and try again.";
};
