import { parseDuration, parseSize } from "../core/quantities.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";

/** Reads values by key; a key that was not written stays unwritten, so that a weaker layer shows through. */
export const reader = <I extends object>(source: Source, path: Path, input: I) => {
  const out: Record<string, unknown> = {};
  return {
    out,
    key<K extends keyof I & string>(key: K, read: (value: NonNullable<I[K]>, at: Path) => unknown): void {
      const value = input[key];
      if (value !== undefined && value !== null) out[key] = read(value, [...path, key]);
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
  };
};
