import { z } from "zod";
import { canonicalResource, parseDuration, parseResource, parseSize, resourceNameProblem } from "../core/quantities.ts";
import type { Resources } from "../core/resources.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";
import { checkName, checkText } from "./text-rules.ts";
import type { TextPlan } from "./yaml-document.ts";

/**
 * Tables of keys: each key of a part of clusters.yaml is one row, from which its shape, how its text is taken, its
 * reading and the type of its value all follow. A key with a dash may be written with an underscore too.
 */
export interface Kind<T> {
  readonly schema: z.ZodType;
  readonly plan?: TextPlan;
  /** Of a map: names worth suggesting for an unknown key. */
  readonly names?: readonly string[];
  /** Of a map whose layers are put together name by name: what a name is called, however it was written. */
  readonly inner?: (written: string) => string;
  /** Works the value out; throws with the place and what to do. */
  readonly read: (value: never, source: Source, at: Path) => T;
}

export type Keys = Readonly<Record<string, Kind<unknown>>>;

type Camel<S extends string> = S extends `${infer Head}-${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** The values of a table's keys, `log-directory` as `logDirectory`. */
export type Values<K extends Keys> = {
  readonly [N in keyof K & string as Camel<N>]?: K[N] extends Kind<infer T> ? T : never;
};

/** Where a key was written, so that later problems can still be reported there. */
export interface Written {
  readonly source: Source;
  readonly path: Path;
}

export interface ReadKeys {
  readonly values: Readonly<Record<string, unknown>>;
  /** By key; of maps that are put together name by name, also by `key.name`. */
  readonly places: Readonly<Record<string, Written>>;
}

const camel = (key: string): string => key.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Both spellings of a key; the first is the one that is suggested. */
const spellings = (key: string): string[] => (key.includes("-") ? [key, key.replaceAll("-", "_")] : [key]);

export const shapeOf = (keys: Keys): Record<string, z.ZodOptional<z.ZodType>> =>
  Object.fromEntries(
    Object.entries(keys).flatMap(([key, kind]) => spellings(key).map((spelling) => [spelling, kind.schema.optional()])),
  );

export const planOf = (keys: Keys): Record<string, TextPlan> =>
  Object.fromEntries(
    Object.entries(keys).flatMap(([key, { plan }]) =>
      plan === undefined ? [] : spellings(key).map((spelling) => [spelling, plan]),
    ),
  );

/** A key that was not written stays unwritten, so that a weaker layer shows through. `aliases`: other names of a key. */
export const readKeys = (
  keys: Keys,
  source: Source,
  path: Path,
  input: Readonly<Record<string, unknown>>,
  aliases: Readonly<Record<string, string>> = {},
): ReadKeys => {
  const values: Record<string, unknown> = {};
  const places: Record<string, Written> = {};
  for (const [written, value] of Object.entries(input)) {
    const dashed = Object.hasOwn(keys, written) ? written : written.replaceAll("_", "-");
    const key = Object.hasOwn(aliases, dashed) ? aliases[dashed]! : dashed;
    if (!Object.hasOwn(keys, dashed) || value === undefined || value === null) continue;
    const at = [...path, written];
    if (Object.hasOwn(places, key)) {
      const other = places[key]!.path.at(-1);
      badValue(source, at, `means the same as '${other}', which is given too`, "Keep one of them.");
    }
    values[camel(key)] = keys[dashed]!.read(value as never, source, at);
    places[key] = { source, path: at };
    const { inner } = keys[dashed]!;
    if (inner !== undefined)
      for (const name of Object.keys(value)) places[`${key}.${inner(name)}`] = { source, path: [...at, name] };
  }
  return { values, places };
};

/** Of all values, those of one table. */
export const pickKeys = <K extends Keys>(keys: K, values: Readonly<Record<string, unknown>>): Values<K> =>
  Object.fromEntries(
    Object.keys(keys)
      .map(camel)
      .filter((key) => values[key] !== undefined)
      .map((key) => [key, values[key]]),
  ) as Values<K>;

const asText: TextPlan = { text: true };

const textSchema = z.string({ error: "must be text" });
const wholeSchema = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const amountSchema = z.union([z.number(), z.string()], { error: "must be a number, or a size such as 16G" });
const durationSchema = z.union([z.number(), z.string()], { error: "must be a duration such as 90, 10m or 04:00:00" });
const flagSchema = z.boolean({ error: "must be true or false" });
const linesSchema = z.union([textSchema, z.array(textSchema)], { error: "must be a list of lines" });

const ONE_LINE = "Write it on one line, or as a list of lines.";

/** Text of one line: it becomes part of a line of a script. */
export const checkLine = (source: Source, at: Path, value: string): string => {
  checkText(source, at, value);
  if (/[\n\r]/.test(value)) badValue(source, at, "contains a line break", ONE_LINE);
  return value;
};

export const name: Kind<string> = {
  schema: textSchema,
  plan: asText,
  read: (value: string, source, at) => checkName(source, at, value),
};

/** One line that is not empty. */
export const line: Kind<string> = {
  schema: textSchema,
  plan: asText,
  read: (value: string, source, at) => checkLine(source, at, value) || badValue(source, at, "is empty"),
};

/** Shell lines, or options: one text or a list of them; a text of several lines is as many. */
export const lines: Kind<readonly string[]> = {
  schema: linesSchema,
  plan: { text: true, items: asText },
  read: (value: string | string[], source, at) =>
    [value].flat().flatMap((text, i) =>
      checkText(source, [...at, i], text)
        .replace(/\n$/, "")
        .split("\n"),
    ),
};

/** Words: a list, or one text that is split at its blanks. */
export const words: Kind<readonly string[]> = {
  schema: z.union([textSchema, z.array(textSchema)], { error: "must be a list of words" }),
  plan: { text: true, items: asText },
  read: (value: string | string[], source, at) =>
    (Array.isArray(value) ? value : value.split(/\s+/).filter((word) => word !== "")).map((word, i) =>
      checkLine(source, [...at, i], word),
    ),
};

export const flag: Kind<boolean> = { schema: flagSchema, read: (value: boolean) => value };

export const bytes: Kind<number> = {
  schema: amountSchema,
  read: (value: string | number, source, at) => parsed(source, at, () => parseSize(value)),
};

export const seconds: Kind<number> = {
  schema: durationSchema,
  read: (value: string | number, source, at) => parsed(source, at, () => parseDuration(value)),
};

/** More than zero. */
export const someSeconds: Kind<number> = {
  schema: durationSchema,
  read: (value: string | number, source, at) =>
    parsed(source, at, () => parseDuration(value)) || badValue(source, at, "must be more than 0"),
};

export const whole = (min: number, max: number): Kind<number> => ({
  schema: wholeSchema,
  read: (value: number, source, at) =>
    value < min || value > max ? badValue(source, at, `must be between ${min} and ${max}, not ${value}`) : value,
});

export const oneOf = <T extends string>(...choices: readonly T[]): Kind<T> => ({
  schema: z.enum(choices as unknown as [T, ...T[]], { error: `must be one of ${choices.join(", ")}` }),
  plan: asText,
  read: (value: T) => value,
});

/** An absolute path; what a shell or the node would expand is left to it where `variables` says so. */
export const directory = (variables = false): Kind<string> => ({
  schema: textSchema,
  plan: asText,
  read: (value: string, source, at) => {
    checkName(source, at, value);
    if (!value.startsWith("/") && !(variables && value.startsWith("$")))
      badValue(
        source,
        at,
        `must be an absolute path, not "${value}"`,
        variables ? "Begin it with / or with a variable of the node, such as $TMPDIR." : "Begin it with /.",
      );
    return value;
  },
});

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Environment variables by name; one without a value is empty. */
export const environment: Kind<Readonly<Record<string, string>>> = {
  schema: z.record(z.string(), z.union([textSchema, z.null().transform(() => "")], { error: "must be text" }), {
    error: "must be a map of names and values",
  }),
  plan: { rest: { text: true, nullable: true } },
  inner: (name) => name,
  read: (value: Readonly<Record<string, string>>, source, at) => {
    for (const [variable, text] of Object.entries(value)) {
      if (!VARIABLE.test(variable))
        badValue(
          source,
          [...at, variable],
          "a variable name has letters, digits and _, and does not start with a digit",
        );
      checkText(source, [...at, variable], text);
    }
    return value;
  },
};

/** `name=value` pairs a manager knows. */
export const requests: Kind<Readonly<Record<string, string>>> = {
  schema: z.record(z.string(), textSchema, { error: "must be a map of names and values" }),
  plan: { rest: asText },
  read: (value: Readonly<Record<string, string>>, source, at) => {
    for (const [request, text] of Object.entries(value))
      if (!/^[\w.-]+$/.test(request) || !/^[^\s,]*$/.test(text))
        badValue(source, [...at, request], "must be a name and a value without spaces or commas");
    return value;
  },
};

/** Amounts of resources by name, in units. */
export const resources: Kind<Resources> = {
  schema: z.record(z.string(), amountSchema, { error: "must be a map of names and amounts" }),
  inner: canonicalResource,
  read: (values: Readonly<Record<string, string | number>>, source, at) => {
    const units: Record<string, number> = {};
    for (const [resource, value] of Object.entries(values)) {
      const inner = [...at, resource];
      const problem = resourceNameProblem(resource);
      if (problem !== undefined) badValue(source, inner, problem);
      const canonical = canonicalResource(resource);
      if (Object.hasOwn(units, canonical)) badValue(source, inner, `${canonical} is given twice`);
      units[canonical] = parsed(source, inner, () => parseResource(canonical, value));
    }
    return units;
  },
};
