import { SlipwayError } from "../../errors.ts";
import type { Style } from "./style.ts";
import { printable } from "./text.ts";

const lines = (text: string): string => text.split("\n").map(printable).join("\n");

/** Any thrown value as an error of the table. */
export const asSlipwayError = (error: unknown): SlipwayError => {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", { detail: error instanceof Error ? error.message : String(error) }, error);
};

/** What is wrong, then what to do. Line breaks stay: messages may hold several places of a file. */
export const errorText = (error: SlipwayError, style: Style): string => {
  const hint = error.hint.trim();
  return `${style.red("error:")} ${lines(error.message)}${hint === "" ? "" : `\n  ${lines(hint)}`}`;
};

/** Stacks of the error and of what caused it, for `--debug`. */
export const debugText = (error: unknown): string => {
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length < 8; at = at.cause) {
    stacks.push(at.stack ?? String(at));
  }
  return stacks.join("\ncaused by ");
};
