import { canonicalResource, parseDuration, parseResource, parseSize, resourceNameProblem } from "../core/quantities.ts";
import type { Resources } from "../core/resources.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";
import { checkName, checkText } from "./text-rules.ts";

/** Reads values by key; a key that was not written stays unwritten, so that a weaker layer shows through. */
export const reader = <I extends object>(source: Source, path: Path, input: I) => {
  const out: Record<string, unknown> = {};
  return {
    out,
    key<K extends keyof I & string>(key: K, read: (value: NonNullable<I[K]>, at: Path) => unknown): void {
      const value = input[key];
      if (value !== undefined && value !== null) out[key] = read(value, [...path, key]);
    },
    name(value: string, at: Path): string {
      return checkName(source, at, value);
    },
    lines(value: string | string[], at: Path): string[] {
      return [value].flat().map((line, i) => checkText(source, [...at, i], line));
    },
    seconds(value: string | number, at: Path): number {
      return parsed(source, at, () => parseDuration(value));
    },
    bytes(value: string | number, at: Path): number {
      return parsed(source, at, () => parseSize(value));
    },
    whole:
      (min: number, max: number) =>
      (value: number, at: Path): number =>
        value < min || value > max ? badValue(source, at, `must be between ${min} and ${max}, not ${value}`) : value,
    resources(values: Readonly<Record<string, string | number>>, at: Path): Resources {
      const units: Record<string, number> = {};
      for (const [name, value] of Object.entries(values)) {
        const inner = [...at, name];
        const problem = resourceNameProblem(name);
        if (problem !== undefined) badValue(source, inner, problem);
        const canonical = canonicalResource(name);
        if (Object.hasOwn(units, canonical)) badValue(source, inner, `${canonical} is given twice`);
        units[canonical] = parsed(source, inner, () => parseResource(canonical, value));
      }
      return units;
    },
  };
};
