import type { Heredoc } from "./heredoc.ts";
import { type SimpleCommand, createSimpleCommand } from "./shell-command.ts";

/** What is open at a point of a shell text, the innermost last: the scanner's state. */

export type Frame =
  | { readonly kind: "code"; readonly closes: boolean; readonly list: boolean; readonly command: SimpleCommand }
  | { readonly kind: "single" | "dollar-single" | "double" | "backtick" }
  /** `((…))`, `$((…))`, `$[…]` and the subscript of an assignment. */
  | { readonly kind: "arithmetic"; readonly opens: "(" | "["; depth: number }
  | { readonly kind: "brace"; readonly quoted: boolean; text: string }
  | { readonly kind: "heredoc"; readonly document: Heredoc; line: string };

export interface Scan {
  readonly frames: Frame[];
  /** Here-documents that begin with the next line. */
  readonly pending: Heredoc[];
  comment: boolean;
  /** Shells disagree about what was scanned so far. */
  ambiguous: boolean;
  /** Why a value that was accepted is not allowed in its place after all. */
  late: string | undefined;
  /** Literal text since the last value, for names of variables that it would continue. */
  recent: string;
}

export const code = (closes: boolean, list = false): Frame => ({
  kind: "code",
  closes,
  list,
  command: createSimpleCommand(),
});

export const createScan = (): Scan => ({
  frames: [code(false)],
  pending: [],
  comment: false,
  ambiguous: false,
  late: undefined,
  recent: "",
});

export const top = ({ frames }: Scan): Frame => frames[frames.length - 1]!;

/** What `$` begins, in code, in double quotes and in here-documents; returns the position after it. */
export const dollar = (scan: Scan, text: string, at: number, quoted: boolean): number => {
  const next = text[at + 1];
  if (next === "(" && text[at + 2] === "(") {
    scan.frames.push({ kind: "arithmetic", opens: "(", depth: 2 });
    return at + 3;
  }
  if (next === "(") scan.frames.push(code(true));
  else if (next === "[") scan.frames.push({ kind: "arithmetic", opens: "[", depth: 1 });
  else if (next === "{") scan.frames.push({ kind: "brace", quoted, text: "" });
  else return at + 1;
  return at + 2;
};
