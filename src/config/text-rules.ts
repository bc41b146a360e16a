import { compile, PLACEHOLDERS, type Template } from "../core/template.ts";
import { nearest, suggest } from "./nearest.ts";
import { badValue, refuse, type Path, type Source } from "./source.ts";

/** Rules for text that ends up in processes, paths and on screens. */

export const MAX_NAME = 200;
/** The system allows at most 128 KiB for one argument or environment variable. */
export const MAX_ARGUMENT_BYTES = 131_000;

const CONTROL = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]/; // oxlint-disable-line no-control-regex
const UNPAIRED = /\p{Surrogate}/u;

/** What the items of a task are, as far as placeholders care. */
export type ItemKind = "none" | "plain" | "json" | "columns" | { readonly keys: readonly string[] };

/** Valid text without NUL that fits an argument. */
export const checkText = (source: Source, path: Path, text: string): string => {
  if (text.includes("\0")) badValue(source, path, "contains a NUL character", "Remove it: no program can receive it.");
  if (UNPAIRED.test(text)) badValue(source, path, "is not valid text (an unpaired surrogate)");
  if (text.length * 3 > MAX_ARGUMENT_BYTES && Buffer.byteLength(text) > MAX_ARGUMENT_BYTES) {
    const remedy = "Put it into a file: the system does not accept longer arguments.";
    badValue(source, path, `is longer than ${MAX_ARGUMENT_BYTES} bytes`, remedy);
  }
  return text;
};

/** A name that fits on a line of a terminal. */
export const checkName = (source: Source, path: Path, name: string): string => {
  checkText(source, path, name);
  if (name.trim() === "") badValue(source, path, "is empty", "Write a name, or leave the key out.");
  if (CONTROL.test(name)) badValue(source, path, "contains a line break or another control character");
  if (name.length > MAX_NAME) badValue(source, path, `has ${name.length} characters; at most ${MAX_NAME} are allowed`);
  return name;
};

/** A usable name from any text: a file's or a program's. */
export const nameFrom = (text: string, fallback: string): string => {
  const name = text
    .replace(new RegExp(CONTROL, "g"), " ")
    .replace(/\p{Surrogate}/gu, "")
    .trim()
    .slice(0, MAX_NAME);
  return name === "" ? fallback : name;
};

/** Compiles text with placeholders and refuses those that can have no value in this task. */
export const checkTemplate = (
  source: Source,
  path: Path,
  text: string,
  items: ItemKind,
  options: { readonly shell?: boolean } = {},
): Template => {
  checkText(source, path, text);
  const template = compile(text, options);
  if ("problem" in template) {
    if (template.problem === "malformed") return badValue(source, path, template.detail);
    const near = nearest(template.name.split(".")[0]!, PLACEHOLDERS);
    const suggestion = near === undefined ? "" : `; did you mean {${near}}?`;
    return refuse("unknown-placeholder", source, path, { name: template.name, suggestion });
  }
  refuseItem(source, path, items, template.uses.has("item"), template.fields);
  return template;
};

/** Refuses `{item}` where the task has no items, and fields of items that are plain text. */
export const refuseItem = (
  source: Source,
  path: Path,
  items: ItemKind,
  used: boolean,
  fields: readonly (readonly string[])[],
): void => {
  if (items === "none" && used) {
    badValue(
      source,
      path,
      "{item} has no value: the task has no `each`",
      "Add `each` (or --array, --each, --each-line, --from-json), or write {{item}} for literal braces.",
    );
  }
  if (items === "columns") {
    const odd = fields.find((field) => field.length !== 1 || !/^(?:0|[1-9]\d*)$/.test(field[0]!));
    if (odd !== undefined)
      badValue(source, path, `{item.${odd.join(".")}} is not a column`, "Columns are {item.0}, {item.1} and so on.");
  }
  if (typeof items === "object") {
    const odd = fields.find(([key, ...more]) => more.length > 0 || !items.keys.includes(key!));
    if (odd !== undefined)
      badValue(
        source,
        path,
        `{item.${odd.join(".")}}: the matrix has no key '${odd.join(".")}'${suggest(odd.join("."), items.keys)}`,
        `Its keys: ${items.keys.join(", ")}.`,
      );
  }
  if (items === "plain" && fields.length > 0) {
    const detail = `{item.${fields[0]!.join(".")}} needs items with fields; these are plain text`;
    badValue(
      source,
      path,
      detail,
      "Use `each: {json: FILE}`, `matrix`, or a list of maps under `values`; columns of lines need `colsep`.",
    );
  }
};

/** Text with placeholders that must not be empty, such as a path. */
export const checkPath = (source: Source, path: Path, text: string, items: ItemKind): string => {
  if (text === "") badValue(source, path, "is empty");
  checkTemplate(source, path, text, items);
  return text;
};
