import { SlipwayError, type ErrorCode } from "../errors.ts";
import type { Excerpt } from "./excerpt.ts";

/** Keys and positions from the top of a document down to a value. */
export type Path = readonly (string | number)[];

export interface Place {
  /** `file.yaml:12:5`, `tasks[1].cpus`, or `command line`. */
  readonly where: string;
  /** The key as its writer knows it: `cpus`, `env.PATH`, `--cpus`. */
  readonly key: string;
  /** Of a file: the line it stands in. */
  readonly at?: Excerpt;
}

/** Where the values of a document were written. */
export interface Source {
  /** The place of a value, or of the key itself; of the nearest enclosing value when there is none at that path. */
  locate(path: Path, at?: "key" | "value"): Place;
  /** What was written at a path, as it was written; undefined where there is nothing. Of files only. */
  written?(path: Path): unknown;
}

/** What a document holds at a path. */
export const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (inner, step) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, step)
        ? (inner as Record<string | number, unknown>)[step]
        : undefined,
    value,
  );

/** `tasks[1].env.PATH` */
export const pathText = (path: Path): string =>
  path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`),
    "",
  );

/** The part of a path that a user thinks of as the key: what follows the entry of a list of tasks. */
export const keyText = (path: Path): string =>
  pathText(path[0] === "tasks" && path.length > 2 ? path.slice(2) : path[0] === "defaults" ? path.slice(1) : path);

/** A document that came as JSON, where the path is the place. */
export const jsonSource: Source = {
  locate: (path) => ({ where: pathText(path) || "request", key: keyText(path) || "request" }),
};

/** Throws an error that says where. `facts` may override the place's key. */
export const refuse = (
  code: ErrorCode,
  source: Source,
  path: Path,
  facts: Readonly<Record<string, unknown>>,
): never => {
  throw new SlipwayError(code, { ...source.locate(path), ...facts });
};

/** Throws `bad-value`: what is wrong with the value at a path, and what to do. */
export const badValue = (
  source: Source,
  path: Path,
  detail: string,
  remedy = "Correct the value and try again.",
): never => refuse("bad-value", source, path, { detail, remedy });

/** Runs a parser from core; its RangeError becomes `bad-value` at this path. */
export const parsed = <T>(source: Source, path: Path, parse: () => T): T => {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return badValue(source, path, error.message);
    throw error;
  }
};
