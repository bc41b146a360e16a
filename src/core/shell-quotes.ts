import { type Frame, type Scan, dollar, top } from "./shell-frames.ts";

/** One step within quotes, arithmetic, braces or a here-document; each returns the position after it. */

/** `${name:-…}` and the like: what follows the operator is text. */
export const WORD_OPERATOR = /^(?:[A-Za-z_][A-Za-z0-9_]*|\d+|[@*?$!#-]):?[-=?+]/;

/** Quotes do not change what a word is: e'va'l is eval. */
const growWord = (scan: Scan, more: string): void => {
  const below = scan.frames.at(-2);
  if (below?.kind === "code") below.command.word = (below.command.word ?? "") + more;
};

export const inQuotes = (scan: Scan, frame: Frame, text: string, at: number): number => {
  const char = text[at]!;
  switch (frame.kind) {
    case "single":
      if (char === "'") scan.frames.pop();
      else growWord(scan, char);
      return at + 1;
    case "dollar-single":
      if (char === "\\") {
        if (text[at + 1] === "'") scan.ambiguous = true;
        // the escape may stand for a letter: the word is no longer known
        growWord(scan, "\0");
        return at + 2;
      }
      if (char === "'") scan.frames.pop();
      else growWord(scan, char);
      return at + 1;
    case "backtick":
      if (char === "`") scan.frames.pop();
      return char === "\\" ? at + 2 : at + 1;
    default:
      if (char === "\\") {
        growWord(scan, text[at + 1] ?? "");
        return at + 2;
      }
      if (char === '"') scan.frames.pop();
      else {
        growWord(scan, char);
        if (char === "`") scan.frames.push({ kind: "backtick" });
        else if (char === "$") return dollar(scan, text, at, true);
      }
      return at + 1;
  }
};

export const inArithmetic = (scan: Scan, frame: Frame & { kind: "arithmetic" }, text: string, at: number): number => {
  const char = text[at]!;
  if (char === "\\") return at + 2;
  if (char === frame.opens) frame.depth += 1;
  else if (char === (frame.opens === "(" ? ")" : "]")) {
    frame.depth -= 1;
    if (frame.depth > 0) return at + 1;
    scan.frames.pop();
    const below = top(scan);
    if (frame.opens === "[" && below.kind === "code") below.command.word = `${below.command.word ?? ""}]`;
  } else if (char === '"') scan.frames.push({ kind: "double" });
  else if (char === "'") scan.frames.push({ kind: "single" });
  else if (char === "`") scan.frames.push({ kind: "backtick" });
  else if (char === "$") return dollar(scan, text, at, false);
  return at + 1;
};

export const inBraces = (scan: Scan, frame: Frame & { kind: "brace" }, text: string, at: number): number => {
  const char = text[at]!;
  if (char === "}") {
    scan.frames.pop();
    return at + 1;
  }
  frame.text += char;
  if (char === "\\") return at + 2;
  if (char === '"') scan.frames.push({ kind: "double" });
  else if (char === "`") scan.frames.push({ kind: "backtick" });
  else if (char === "'") {
    // within double quotes it is a character after :- and the like, and a quote after # and %, but not in all shells
    if (!frame.quoted) scan.frames.push({ kind: "single" });
    else if (!WORD_OPERATOR.test(frame.text)) scan.ambiguous = true;
  } else if (char === "$") return dollar(scan, text, at, frame.quoted);
  return at + 1;
};

export const inHeredoc = (scan: Scan, frame: Frame & { kind: "heredoc" }, text: string, at: number): number => {
  const char = text[at]!;
  if (frame.document.raw) return at + 1;
  if (char === "\\") return at + 2;
  if (char === "`") scan.frames.push({ kind: "backtick" });
  else if (char === "$") return dollar(scan, text, at, true);
  return at + 1;
};
