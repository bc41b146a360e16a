import type { z } from "zod";
import { quoted } from "../core/quantities.ts";
import { pathText, refuse, valueAt, type Path, type Source } from "./source.ts";
import { suggest } from "./nearest.ts";

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

/** The problem to report. Where one key is missing and another unknown, the unknown one was meant to be it. */
const firstOf = (issues: readonly Issue[], value: unknown): Issue => {
  const first = innermost(issues[0]!);
  const parent = first.path.slice(0, -1);
  if (first.path.length === 0 || valueAt(value, first.path as Path) !== undefined) return first;
  const beside = (issue: Issue): boolean =>
    issue.code === "unrecognized_keys" &&
    issue.path.length === parent.length &&
    issue.path.every((step, i) => step === parent[i]);
  return issues.find(beside) ?? first;
};

/** The keys a strict map at a path may have. */
export type KeysAt = (path: Path) => readonly string[];

/**
 * Checks a value against a schema. The first problem, in the order of the text where there is one, is thrown with its
 * place: an unknown key with the nearest known one, anything else as `bad-value`.
 */
export const checkShape = <S extends z.ZodType>(
  schema: S,
  value: unknown,
  source: Source,
  keysAt: KeysAt,
  hint: KeyHint = () => undefined,
): z.output<S> => {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = firstOf(result.error.issues as readonly Issue[], value);
  const path = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step));
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys![0]!;
    const suggestion = hint(key, path) ?? suggest(key, keysAt(path));
    return refuse("unknown-key", source, path, { ...source.locate([...path, key], "key"), key, suggestion });
  }
  const found = valueAt(value, path);
  const missing = found === undefined && path.length > 0;
  const detail = missing ? `is missing; it ${issue.message}` : `${issue.message}, not ${kindOf(found)}`;
  return refuse("bad-value", source, path, {
    detail,
    remedy: missing ? `Add ${pathText(path.slice(-1))} and try again.` : "Correct the value and try again.",
  });
};
