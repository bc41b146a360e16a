import { isAlias, isMap, isPair, isScalar, isSeq, parseDocument, type Document, type Node, type Pair } from "yaml";
import { SlipwayError } from "../errors.ts";
import { formatSize } from "../core/quantities.ts";
import { excerptOf, lineStarts, placeIn, syntaxRemedy, type Excerpt } from "./excerpt.ts";
import { createProblems, type Problems } from "./problems.ts";
import { keyText, valueAt, type Path, type Source } from "./source.ts";

/** Which scalars are taken as they were written: `0.10`, `true` and `007` in a command are text, not numbers. */
export interface TextPlan {
  readonly text?: boolean;
  /** With `text`: unquoted `null` and `~` mean no value, as in YAML, rather than text. */
  readonly nullable?: boolean;
  readonly items?: TextPlan;
  readonly keys?: Readonly<Record<string, TextPlan>>;
  /** For every key of a map that `keys` does not name. */
  readonly rest?: TextPlan;
}

export interface YamlDocument extends Source {
  readonly value: unknown;
}

export const MAX_FILE_BYTES = 64 * 2 ** 20;
const MAX_DEPTH = 64;
const MOST_SYNTAX_ERRORS = 10;
/** Values that aliases may add to those in the text itself. */
const MAX_ALIASED = 1_000_000;

/**
 * YAML as plain values, with places for errors. Refused: what is not YAML, duplicate keys, keys that are not text, aliases
 * that multiply beyond measure, deep nesting, and more than 64 MB. Merge keys (`<<: *base`) work. Duplicate keys go to
 * `collected`, if given; everything else is thrown.
 */
export const readYaml = (text: string, file: string, plan: TextPlan = {}, collected?: Problems): YamlDocument => {
  if (text.length > MAX_FILE_BYTES || Buffer.byteLength(text) > MAX_FILE_BYTES) {
    throw new SlipwayError("too-large", {
      what: file,
      size: formatSize(text.length),
      limit: formatSize(MAX_FILE_BYTES),
    });
  }
  let starts: readonly number[] | undefined;
  const excerpt = (offset: number | undefined): Excerpt => {
    const { line, column, start } = placeIn((starts ??= lineStarts(text)), Math.min(offset ?? 0, text.length));
    return excerptOf(text, start, file, line, column);
  };
  const whereOf = ({ line, column }: Excerpt): string => `${file}:${line}:${column}`;
  const problemAt = (offset: number | undefined, detail: string, remedy?: string): SlipwayError => {
    const at = excerpt(offset);
    return new SlipwayError("bad-file", {
      where: whereOf(at),
      detail,
      at,
      ...(remedy === undefined ? {} : { remedy }),
    });
  };
  const bad = (offset: number | undefined, detail: string, remedy?: string): never => {
    throw problemAt(offset, detail, remedy);
  };
  const document = compose(text, bad);
  const problems = collected ?? createProblems();
  for (const error of document.errors.slice(0, MOST_SYNTAX_ERRORS)) {
    const message = error.message.replace(/\s+/g, " ");
    const deep = /call stack/.test(message);
    const { text: line } = excerpt(error.pos[0]);
    const remedy = syntaxRemedy(line, message);
    problems.add(problemAt(error.pos[0], deep ? "nested too deeply" : `not valid YAML: ${message}`, remedy));
    // what follows a line that was meant as text is its echo
    if (deep || remedy.startsWith("Quote this")) break;
  }
  problems.end();
  const value = convert(document, plan, bad, problems);
  if (collected === undefined) problems.end();
  return {
    value,
    written: (path) => valueAt(value, path),
    locate: (path, part = "value") => {
      const at = excerpt(offsetOf(document, path, part));
      return { where: whereOf(at), key: keyText(path) || "file", at };
    },
  };
};

type Bad = (offset: number | undefined, detail: string, remedy?: string) => never;

const compose = (text: string, bad: Bad): Document.Parsed => {
  try {
    // Duplicates are found below in linear time; the library compares every key with every other.
    return parseDocument(text, {
      uniqueKeys: false,
      merge: true,
      stringKeys: true,
      prettyErrors: false,
      logLevel: "error",
    });
  } catch (error) {
    if (error instanceof RangeError) return bad(0, "nested too deeply");
    throw error;
  }
};

const startOf = (node: unknown): number | undefined => (node as Node | null | undefined)?.range?.[0];

const convert = (document: Document.Parsed, plan: TextPlan, bad: Bad, problems: Problems): unknown => {
  /** Anchored nodes already seen: their value and how many values they hold, aliases expanded. */
  const anchors = new Map<string, { readonly value: unknown; readonly size: number }>();
  let aliased = 0;
  let size = 0;

  const read = (node: unknown, plan: TextPlan | undefined, depth: number): unknown => {
    if (depth > MAX_DEPTH) bad(startOf(node), `nested more than ${MAX_DEPTH} levels deep`);
    if (isAlias(node)) {
      const target =
        anchors.get(node.source) ?? bad(startOf(node), `the alias *${node.source} has no anchor before it`);
      aliased += target.size;
      size += target.size;
      if (aliased > MAX_ALIASED) bad(startOf(node), `aliases expand to more than ${MAX_ALIASED} values`);
      return target.value;
    }
    const before = size++;
    const value = isMap(node)
      ? readMap(node.items, plan, depth)
      : isSeq(node)
        ? node.items.map((item) => read(item, plan?.items, depth + 1))
        : readScalar(node, plan);
    const anchor = (node as Node | null)?.anchor;
    if (anchor !== undefined) anchors.set(anchor, { value, size: size - before });
    return value;
  };

  const readScalar = (node: unknown, plan: TextPlan | undefined): unknown => {
    if (!isScalar(node)) return null;
    if (plan?.text !== true || typeof node.value === "string") return node.value;
    if (plan.nullable === true && node.value === null) return null;
    // A value left out stays empty rather than becoming the text "null".
    return node.source === undefined || node.source === "" ? null : node.source;
  };

  const readMap = (pairs: readonly Pair[], plan: TextPlan | undefined, depth: number): Record<string, unknown> => {
    const own = new Map<string, unknown>();
    const merged: object[] = [];
    for (const pair of pairs) {
      const key = isScalar(pair.key) ? pair.key.value : pair.key;
      const source = isScalar(pair.key) ? pair.key.source : undefined;
      if (key === "<<" || source === "<<") {
        const value = read(pair.value, plan, depth + 1);
        for (const base of Array.isArray(value) ? (value as unknown[]) : [value]) {
          if (typeof base !== "object" || base === null || Array.isArray(base))
            return bad(startOf(pair.value), "<< takes a map, or a list of maps");
          merged.push(base);
        }
        continue;
      }
      if (typeof key !== "string") return bad(startOf(pair.key), "a key must be text");
      if (key === "__proto__") bad(startOf(pair.key), "'__proto__' cannot be used as a key");
      if (own.has(key))
        problems.take(() => bad(startOf(pair.key), `the key '${key}' appears twice`, "Keep one of the two lines."));
      own.set(key, read(pair.value, plan?.keys?.[key] ?? plan?.rest, depth + 1));
    }
    for (const base of merged) {
      for (const [key, value] of Object.entries(base)) if (!own.has(key)) own.set(key, value);
    }
    return Object.fromEntries(own);
  };

  return read(document.contents, plan, 0);
};

/** Where in the text a path leads, or as far as it goes; through aliases, to what they stand for. */
const offsetOf = (document: Document.Parsed, path: Path, part: "key" | "value"): number | undefined => {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const [i, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === step);
      if (pair === undefined) return offset;
      next = pair.value;
      const key = startOf(pair.key);
      offset = part === "key" && i === path.length - 1 ? key : (startOf(next) ?? key);
    } else if (isSeq(node) && typeof step === "number") {
      next = node.items[step];
      offset = startOf(next) ?? offset;
    } else return offset;
    node = next;
  }
  return offset;
};
