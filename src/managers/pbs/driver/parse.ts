/**
 * What qstat and pbsnodes print, as records of text. Their JSON is not always JSON: names that look like numbers are
 * unquoted (`1e5`, `nan`), control characters and quotes are not escaped, and after an error the section that was asked
 * for is missing. So it is read by its layout, and every value stays the text that was printed. The text form serves
 * where even that fails.
 */

/** Attributes by name; inner maps are joined with a dot, as the text form has them: `Resource_List.walltime`. */
export type Attributes = ReadonlyMap<string, string>;
export type Records = ReadonlyMap<string, Attributes>;

type Value = string | Fields;
type Fields = Map<string, Value>;

const MOST_DEPTH = 20;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

class NotReadable extends Error {}

/** A quote ends a string only where something can follow a string: others were printed without a backslash. */
const ENDS_STRING = /[ \t]*(?:[,:}\]\r\n]|$)/y;

const unescape = (text: string): string =>
  text.replaceAll(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (_, hex: string | undefined, char: string | undefined) =>
    hex === undefined ? (ESCAPES[char!] ?? char!) : String.fromCharCode(Number.parseInt(hex, 16)),
  );

const read = (text: string): Value => {
  let at = 0;
  const space = (): void => {
    while (at < text.length && (/\s/.test(text[at]!) || text[at] === ",")) at += 1;
  };
  const string = (): string => {
    const start = at + 1;
    for (let end = start; ; end += 1) {
      const next = text.indexOf('"', end);
      if (next < 0) throw new NotReadable("a string has no end");
      let slashes = 0;
      while (text[next - 1 - slashes] === "\\" && next - 1 - slashes >= start) slashes += 1;
      ENDS_STRING.lastIndex = next + 1;
      if (slashes % 2 === 0 && ENDS_STRING.test(text)) {
        at = next + 1;
        const inner = text.slice(start, next);
        return inner.includes("\\") ? unescape(inner) : inner;
      }
      end = next;
    }
  };
  const bare = (): string => {
    const start = at;
    while (at < text.length && !/[,}\]\n]/.test(text[at]!)) at += 1;
    return text.slice(start, at).trim();
  };
  const value = (depth: number): Value => {
    space();
    if (depth > MOST_DEPTH) throw new NotReadable("nested too deeply");
    if (text[at] === '"') return string();
    if (text[at] === "{" || text[at] === "[") return fields(depth, text[at] === "[");
    return bare();
  };
  const fields = (depth: number, isList: boolean): Fields => {
    const found: Fields = new Map();
    at += 1;
    for (;;) {
      space();
      if (at >= text.length) throw new NotReadable("a map has no end");
      if (text[at] === "}" || text[at] === "]") {
        at += 1;
        return found;
      }
      let key = String(found.size);
      if (!isList) {
        if (text[at] !== '"') throw new NotReadable("a key is missing");
        key = string();
        space();
        if (text[at] !== ":") throw new NotReadable("a value is missing");
        at += 1;
      }
      found.set(key, value(depth + 1));
    }
  };
  return value(0);
};

const flatten = (fields: Fields, into: Map<string, string>, prefix = ""): Map<string, string> => {
  for (const [key, value] of fields)
    if (typeof value === "string") into.set(prefix + key, value);
    else flatten(value, into, `${prefix}${key}.`);
  return into;
};

/** A section (`Jobs`, `Queue`, `Server`, `nodes`) of what `-F json` printed; undefined when it cannot be read. */
export const parseJson = (text: string, section: string): Records | undefined => {
  try {
    const whole = read(text);
    if (typeof whole === "string") return undefined;
    const found = new Map<string, Attributes>();
    const entries = whole.get(section);
    if (entries !== undefined && typeof entries !== "string")
      for (const [id, fields] of entries) if (typeof fields !== "string") found.set(id, flatten(fields, new Map()));
    return found;
  } catch (error) {
    if (error instanceof NotReadable) return undefined;
    throw error;
  }
};

/**
 * The text form of the same: a line that is not indented starts a record, an indented `name = value` is an attribute of
 * it, and a line that starts with a tab continues the value before.
 */
export const parseText = (text: string): Records => {
  const found = new Map<string, Map<string, string>>();
  let record: Map<string, string> | undefined;
  let last = "";
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "") continue;
    const [, name, value] = /^ +(\S+) = ?(.*)$/.exec(line) ?? [];
    if (line.startsWith("\t")) {
      if (record !== undefined && last !== "") record.set(last, record.get(last)! + line.slice(1));
    } else if (name !== undefined) {
      last = name;
      record?.set(name, value!);
    } else if (/^\S/.test(line)) {
      record = new Map();
      last = "";
      found.set(line.replace(/^(?:Job Id|Queue|Server): */, "").trim(), record);
    }
  }
  return found;
};

const SIZE = /^(\d+(?:\.\d+)?)([kmgtp]?)([bw]?)$/i;
const POWERS = ["", "k", "m", "g", "t", "p"];

/** `4gb`, `102400kb`, `100mw` (words of eight bytes) as bytes; 0 when it is not a size. */
export const parseSize = (text: string | undefined): number => {
  const [, number, power, unit] = SIZE.exec(text?.trim() ?? "") ?? [];
  if (number === undefined) return 0;
  const bytes = Number(number) * 1024 ** POWERS.indexOf(power!.toLowerCase());
  return Math.floor(unit!.toLowerCase() === "w" ? bytes * 8 : bytes);
};

/** `HH:MM:SS`, `MM:SS` or seconds; undefined when it is not a duration. */
export const parseWalltime = (text: string | undefined): number | undefined =>
  text === undefined || !/^\d+(?::\d+){0,2}$/.test(text.trim())
    ? undefined
    : text
        .trim()
        .split(":")
        .reduce((sum, part) => sum * 60 + Number(part), 0);

export const parseCount = (text: string | undefined): number =>
  text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : 0;
