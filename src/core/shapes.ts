/** Examines a value that may be anything; says what is wrong with it and where, or undefined when nothing is. */
export type Shape = (value: unknown, path: string) => string | undefined;

const MOST_SHOWN = 40;

/** A value for people: short, and on one line. */
const shownValue = (value: unknown): string => {
  if (typeof value === "string")
    return JSON.stringify(value.length > MOST_SHOWN ? `${value.slice(0, MOST_SHOWN)}…` : value);
  if (typeof value === "number" || typeof value === "boolean" || value == null) return String(value);
  return Array.isArray(value) ? `a list of ${value.length}` : `a value of type ${typeof value}`;
};

export const wrong = (path: string, value: unknown, wanted: string): string =>
  `${path} is ${shownValue(value)}, not ${wanted}`;

export const anything: Shape = () => undefined;

export const number: Shape = (value, path) => (typeof value === "number" ? undefined : wrong(path, value, "a number"));

/** An integer from `least` to `most`. */
export const whole =
  (most: number = Number.MAX_SAFE_INTEGER, least = 0): Shape =>
  (value, path) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
      ? undefined
      : wrong(path, value, `a whole number from ${least} to ${most}`);

export const text: Shape = (value, path) => (typeof value === "string" ? undefined : wrong(path, value, "a text"));

export const flag: Shape = (value, path) =>
  typeof value === "boolean" ? undefined : wrong(path, value, "true or false");

export const oneOf =
  (...words: readonly string[]): Shape =>
  (value, path) =>
    words.includes(value as string) ? undefined : wrong(path, value, `one of ${words.join(", ")}`);

export const optional =
  (shape: Shape): Shape =>
  (value, path) =>
    value === undefined ? undefined : shape(value, path);

export const either =
  (first: Shape, second: Shape): Shape =>
  (value, path) =>
    first(value, path) === undefined ? undefined : second(value, path);

export const listOf =
  (shape: Shape): Shape =>
  (value, path) => {
    if (!Array.isArray(value)) return wrong(path, value, "a list");
    for (let i = 0; i < value.length; i += 1) {
      // the path is spelled out only for a value that is wrong: most are not
      if (shape(value[i], "") !== undefined) return shape(value[i], `${path}[${i}]`);
    }
    return undefined;
  };

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);

/** An object used as a table: every value has the same shape. */
export const tableOf =
  (shape: Shape): Shape =>
  (value, path) => {
    if (!isObject(value)) return wrong(path, value, "a table");
    for (const [key, each] of Object.entries(value)) {
      const problem = shape(each, `${path}.${key.slice(0, MOST_SHOWN)}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };

/** An object with at least these fields; others are not looked at. */
export const object = (fields: Readonly<Record<string, Shape>>): Shape => {
  const entries = Object.entries(fields);
  return (value, path) => {
    if (!isObject(value)) return wrong(path, value, "an object");
    for (const [name, shape] of entries) {
      // as with lists
      if (shape(value[name], "") !== undefined) return shape(value[name], path === "" ? name : `${path}.${name}`);
    }
    return undefined;
  };
};

/** Both must hold, the first one first. */
export const both =
  (first: Shape, second: Shape): Shape =>
  (value, path) =>
    first(value, path) ?? second(value, path);
