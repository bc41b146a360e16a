import type { Excerpt } from "../../config/excerpt.ts";
import { SlipwayError, SlipwayErrors } from "../../errors.ts";
import type { Style } from "./style.ts";
import { columnsOf, printable } from "./text.ts";

const lines = (text: string): string => text.split("\n").map(printable).join("\n");

/** Any thrown value as an error of the table. */
export const asSlipwayError = (error: unknown): SlipwayError => {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", { detail: error instanceof Error ? error.message : String(error) }, error);
};

/** The line of the file, and a caret below what is meant. */
const excerptText = ({ at }: SlipwayError["facts"], style: Style): string => {
  const { line, column, text } = (at ?? {}) as Partial<Excerpt>;
  if (typeof line !== "number" || typeof column !== "number" || typeof text !== "string") return "";
  const number = String(line);
  // what is printed in place of a tab or a control character is as wide as this
  const before = printable(text.slice(0, column - 1));
  return [
    "",
    `  ${style.dim(`${number} |`)} ${printable(text)}`,
    `  ${style.dim(`${" ".repeat(number.length)} |`)} ${" ".repeat(columnsOf(before))}${style.red("^")}`,
  ].join("\n");
};

const oneText = (error: SlipwayError, style: Style): string => {
  const hint = error.hint.trim();
  const { at, where } = error.facts as { readonly at?: Partial<Excerpt>; readonly where?: unknown };
  // some messages do not say where, but the place is known
  const place = at?.file === undefined || where !== undefined ? "" : `${at.file}:${at.line}:${at.column}: `;
  const message = `${style.red("error:")} ${lines(place + error.message)}${excerptText(error.facts, style)}`;
  return `${message}${hint === "" ? "" : `\n  ${lines(hint)}`}`;
};

/** What is wrong, where, then what to do; all of it. Line breaks stay: messages may hold several places of a file. */
export const errorText = (error: SlipwayError, style: Style): string =>
  error instanceof SlipwayErrors
    ? [...error.all.map((each) => oneText(each, style)), `${error.all.length} errors`].join("\n")
    : oneText(error, style);

/** Stacks of the error and of what caused it, for `--debug`. */
export const debugText = (error: unknown): string => {
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length < 8; at = at.cause) {
    stacks.push(at.stack ?? String(at));
  }
  return stacks.join("\ncaused by ");
};
