import { evaluates } from "./shell-command.ts";
import { inCode } from "./shell-code.ts";
import { type Scan, createScan, top } from "./shell-frames.ts";
import { WORD_OPERATOR, inArithmetic, inBraces, inHeredoc, inQuotes } from "./shell-quotes.ts";
import type { Quoting } from "./shell-quoting.ts";

/**
 * Where in a shell text a placeholder stands, so that its value is put in as data. Text is scanned as dash and bash
 * read it: quotes, backslashes, comments, substitutions, here-documents. Where they would take the value for code
 * whatever its quoting (arithmetic, eval), or where they disagree about a text, the placeholder is refused with advice
 * on what to write instead. The text comes from its author and may be trusted; values may not.
 */

export interface Refusal {
  readonly refused: string;
}

export interface ShellScanner {
  /** Takes the next piece of literal text, in order. */
  feed(text: string): void;
  /** How a value must be quoted at this point, or why none is allowed. `digits`: it is one of Slipway's own numbers. */
  placeholder(digits?: boolean): Quoting | Refusal;
  /** Why a value that was accepted is not allowed in its place after all: what follows it decided. */
  problem(): string | undefined;
}

const ARITHMETIC =
  "in arithmetic a value is code, however it is quoted; pass it to a program as an argument, or write $SLIPWAY_ITEM where the items are numbers of your own";
const EVALUATED = "treats its words as code or as names of variables, however they are quoted";
const IN_BRACES = "no value is safe; set a variable first (v={item}) and write $v";
const AMBIGUOUS = "shells disagree about what comes before it (an escaped quote inside $'…'); write that another way";

/** Ends in a variable name that a value would extend. */
const OPEN_NAME = /(\\*)\$[A-Za-z_][A-Za-z0-9_]*$/;

const step = (scan: Scan, text: string, at: number): number => {
  const frame = top(scan);
  switch (frame.kind) {
    case "code":
      return inCode(scan, frame, text, at);
    case "arithmetic":
      return inArithmetic(scan, frame, text, at);
    case "brace":
      return inBraces(scan, frame, text, at);
    case "heredoc":
      return inHeredoc(scan, frame, text, at);
    default:
      return inQuotes(scan, frame, text, at);
  }
};

const openHeredoc = (scan: Scan): void => {
  const document = scan.pending.shift();
  if (document !== undefined) scan.frames.push({ kind: "heredoc", document, line: "" });
};

/** A line that ends a here-document ends it no matter what is open inside. */
const noteLines = (scan: Scan, text: string): void => {
  const depth = scan.frames.findIndex(({ kind }) => kind === "heredoc");
  const frame = scan.frames[depth];
  if (frame?.kind !== "heredoc") return;
  for (const char of text) {
    if (char !== "\n") {
      frame.line += char;
      continue;
    }
    const { document, line } = frame;
    if ((document.tabs ? line.replace(/^\t+/, "") : line) === document.end) {
      scan.frames.length = depth;
      openHeredoc(scan);
      return;
    }
    frame.line = "";
  }
};

const feed = (scan: Scan, text: string): void => {
  scan.recent = (scan.recent + text).slice(-300);
  for (let at = 0; at < text.length;) {
    const char = text[at]!;
    if (scan.comment) {
      if (char === "\n") scan.comment = false;
      else {
        at += 1;
        continue;
      }
    }
    const inside = scan.frames.some(({ kind }) => kind === "heredoc");
    const end = step(scan, text, at);
    if (inside) noteLines(scan, text.slice(at, end));
    else if (char === "\n" && top(scan).kind === "code" && scan.pending.length > 0) openHeredoc(scan);
    at = end;
  }
};

const refusal = (scan: Scan): string | undefined => {
  if (scan.ambiguous) return AMBIGUOUS;
  const frame = top(scan);
  for (const each of scan.frames) {
    if (each.kind === "arithmetic") return ARITHMETIC;
    if (each.kind === "backtick") return "no value is safe between backquotes; write $( … ) instead";
    if (each.kind === "dollar-single") return "no value is safe inside $'…'; write '…'";
    if (each.kind === "heredoc" && each !== frame)
      return "no value is safe inside $( … ) or ${ … } in a here-document; set a variable before it and write $v";
    if (each.kind === "brace" && (each !== frame || !WORD_OPERATOR.test(each.text)))
      return `inside $\{ … } ${IN_BRACES}`;
    if (each.kind === "code") {
      const name = evaluates(each.command);
      if (name !== undefined) return `'${name}' ${EVALUATED}`;
      if (each.command.test?.compares === true) return ARITHMETIC;
    }
  }
  return undefined;
};

/** Whether the variable before it would take a value as part of its name. */
const inName = (scan: Scan): boolean => {
  const frame = top(scan);
  if (scan.comment || frame.kind === "single" || (frame.kind === "heredoc" && frame.document.raw)) return false;
  const open = OPEN_NAME.exec(scan.recent);
  return open !== null && open[1]!.length % 2 === 0;
};

/** A value goes here: how it is quoted, or why it is not allowed here. */
const placeholder = (scan: Scan, digits: boolean): Quoting | Refusal => {
  const refused = digits || (scan.comment && !scan.ambiguous) ? undefined : refusal(scan);
  if (refused !== undefined) return { refused };
  if (inName(scan))
    return {
      refused: "the value would become part of the variable name before it; write that as ${name}",
    };
  scan.recent = "";
  const depth = scan.frames.findLastIndex(({ kind }) => kind === "heredoc");
  const document = scan.frames[depth];
  if (document?.kind === "heredoc") document.line += "x";
  for (const [i, frame] of scan.frames.entries()) {
    // a comment is part of no command's words; a here-document not of its own command's, but of those around $( … )
    if (frame.kind !== "code" || scan.comment || (depth >= 0 && i >= depth - 1)) continue;
    frame.command.word = `${frame.command.word ?? ""}\0`;
    if (frame.command.test !== undefined) frame.command.test.valued = true;
  }
  if (scan.comment) return "line";
  const frame = top(scan);
  switch (frame.kind) {
    case "heredoc":
      return frame.document.raw ? "line" : "heredoc";
    case "single":
    case "double":
      return frame.kind;
    case "brace":
      return frame.quoted ? "brace" : "word";
    default:
      return "word";
  }
};

export const shellScanner = (): ShellScanner => {
  const scan = createScan();
  return {
    feed: (text) => feed(scan, text),
    placeholder: (digits = false) => placeholder(scan, digits),
    problem: () => scan.late,
  };
};
