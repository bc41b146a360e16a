import { type Heredoc, heredocAt } from "./heredoc.ts";
import type { Quoting } from "./shell-quoting.ts";
import {
  type SimpleCommand,
  beginsSubscript,
  createSimpleCommand,
  endCommand,
  endWord,
  evaluates,
} from "./shell-command.ts";

/**
 * Where in a shell text a placeholder stands, so that its value is put in as data. Text is scanned as dash and bash read it:
 * quotes, backslashes, comments, substitutions, here-documents. Where they would take the value for code whatever its
 * quoting (arithmetic, eval), or where they read a text differently, the placeholder is refused with what to write
 * instead. The text is its author's and may be trusted; values may not.
 */

export interface Refusal {
  readonly refused: string;
}

export interface ShellScanner {
  /** Takes the next piece of literal text, in order. */
  feed(text: string): void;
  /** How a value must be quoted at this point, or why none may stand here. `digits`: it is a number of Slipway's own. */
  placeholder(digits?: boolean): Quoting | Refusal;
  /** Why a value that was taken may not stand where it does after all: what follows it decided. */
  problem(): string | undefined;
}

type Frame =
  | { readonly kind: "code"; readonly closes: boolean; readonly list: boolean; readonly command: SimpleCommand }
  | { readonly kind: "single" | "dollar-single" | "double" | "backtick" }
  /** `((…))`, `$((…))`, `$[…]` and the subscript of an assignment. */
  | { readonly kind: "arithmetic"; readonly opens: "(" | "["; depth: number }
  | { readonly kind: "brace"; readonly quoted: boolean; text: string }
  | { readonly kind: "heredoc"; readonly document: Heredoc; line: string };

const ARITHMETIC =
  "in arithmetic a value is code, however it is quoted; pass it to a program as an argument, or write $SLIPWAY_ITEM where the items are numbers of your own";
const EVALUATED = "takes its words for code or for names of variables, however they are quoted";
const IN_BRACES = "no value can stand safely there; set a variable first (v={item}) and write $v";
const AMBIGUOUS =
  "shells read what stands before it differently (an escaped quote inside $'…'); write that another way";

/** `${name:-…}` and its like: what follows the operator is text. */
const WORD_OPERATOR = /^(?:[A-Za-z_][A-Za-z0-9_]*|\d+|[@*?$!#-]):?[-=?+]/;
/** Ends in a variable's name that a value would make longer. */
const OPEN_NAME = /(\\*)\$[A-Za-z_][A-Za-z0-9_]*$/;

export const shellScanner = (): ShellScanner => {
  const code = (closes: boolean, list = false): Frame => ({
    kind: "code",
    closes,
    list,
    command: createSimpleCommand(),
  });
  const frames: Frame[] = [code(false)];
  const pending: Heredoc[] = [];
  let comment = false;
  let ambiguous = false;
  let late: string | undefined;
  /** Literal text since the last value, for names of variables that it would continue. */
  let recent = "";

  const top = (): Frame => frames[frames.length - 1]!;
  const push = (frame: Frame): void => {
    frames.push(frame);
  };

  /** What `$` begins, in code, in double quotes and in here-documents; the position behind it. */
  const dollar = (text: string, at: number, quoted: boolean): number => {
    const next = text[at + 1];
    if (next === "(" && text[at + 2] === "(") {
      push({ kind: "arithmetic", opens: "(", depth: 2 });
      return at + 3;
    }
    if (next === "(") push(code(true));
    else if (next === "[") push({ kind: "arithmetic", opens: "[", depth: 1 });
    else if (next === "{") push({ kind: "brace", quoted, text: "" });
    else return at + 1;
    return at + 2;
  };

  const inCode = (frame: Frame & { kind: "code" }, text: string, at: number): number => {
    const { command } = frame;
    const char = text[at]!;
    const grow = (more: string): void => {
      command.word = (command.word ?? "") + more;
    };
    switch (char) {
      case "\\":
        if (text[at + 1] !== "\n") grow(text[at + 1] ?? "");
        return at + 2;
      case "'":
      case '"':
        grow("");
        push({ kind: char === "'" ? "single" : "double" });
        return at + 1;
      case "`":
        grow("");
        push({ kind: "backtick" });
        return at + 1;
      case "$":
        if (text[at + 1] === "'" || text[at + 1] === '"') {
          grow("");
          push({ kind: text[at + 1] === "'" ? "dollar-single" : "double" });
          return at + 2;
        }
        grow("$");
        return dollar(text, at, false);
      case "(":
        if (text[at + 1] === "(" && command.word === undefined) {
          push({ kind: "arithmetic", opens: "(", depth: 2 });
          return at + 2;
        }
        push(code(true, /\+?=$/.test(command.word ?? "")));
        return at + 1;
      case "[":
        grow("[");
        if (beginsSubscript(command, frame.list)) push({ kind: "arithmetic", opens: "[", depth: 1 });
        return at + 1;
      case ")":
        late ??= endCommand(command);
        if (frame.closes && command.cases === 0) frames.pop();
        return at + 1;
      case "\n":
      case ";":
      case "&":
      case "|":
        late ??= endCommand(command);
        return at + 1;
      case "<":
      case ">":
        return redirection(frame, text, at);
      case " ":
      case "\t":
        late ??= endWord(command);
        return at + 1;
      case "#":
        if (command.word === undefined) comment = true;
        else grow(char);
        return at + 1;
      default:
        grow(char);
        return at + 1;
    }
  };

  const redirection = ({ command }: Frame & { kind: "code" }, text: string, at: number): number => {
    // a number before it is the descriptor, no word
    if (/^\d+$/.test(command.word ?? "")) command.word = undefined;
    late ??= endWord(command);
    if (text[at + 1] === "(") {
      push(code(true));
      return at + 2;
    }
    const found = text.startsWith("<<<", at) ? undefined : heredocAt(text, at);
    if (found !== undefined) {
      pending.push(found.document);
      return at + found.length;
    }
    command.redirected = true;
    let end = at;
    while (end < text.length && /[<>&|]/.test(text[end]!)) end += 1;
    return end;
  };

  /** Quotes change nothing of what a word is: e'va'l is eval. */
  const growWord = (more: string): void => {
    const below = frames.at(-2);
    if (below?.kind === "code") below.command.word = (below.command.word ?? "") + more;
  };

  const inQuotes = (frame: Frame, text: string, at: number): number => {
    const char = text[at]!;
    switch (frame.kind) {
      case "single":
        if (char === "'") frames.pop();
        else growWord(char);
        return at + 1;
      case "dollar-single":
        if (char === "\\") {
          if (text[at + 1] === "'") ambiguous = true;
          // what it stands for may be a letter: the word is not known any more
          growWord("\0");
          return at + 2;
        }
        if (char === "'") frames.pop();
        else growWord(char);
        return at + 1;
      case "backtick":
        if (char === "`") frames.pop();
        return char === "\\" ? at + 2 : at + 1;
      default:
        if (char === "\\") {
          growWord(text[at + 1] ?? "");
          return at + 2;
        }
        if (char === '"') frames.pop();
        else {
          growWord(char);
          if (char === "`") push({ kind: "backtick" });
          else if (char === "$") return dollar(text, at, true);
        }
        return at + 1;
    }
  };

  const inArithmetic = (frame: Frame & { kind: "arithmetic" }, text: string, at: number): number => {
    const char = text[at]!;
    if (char === "\\") return at + 2;
    if (char === frame.opens) frame.depth += 1;
    else if (char === (frame.opens === "(" ? ")" : "]")) {
      frame.depth -= 1;
      if (frame.depth > 0) return at + 1;
      frames.pop();
      const below = top();
      if (frame.opens === "[" && below.kind === "code") below.command.word = `${below.command.word ?? ""}]`;
    } else if (char === '"') push({ kind: "double" });
    else if (char === "'") push({ kind: "single" });
    else if (char === "`") push({ kind: "backtick" });
    else if (char === "$") return dollar(text, at, false);
    return at + 1;
  };

  const inBraces = (frame: Frame & { kind: "brace" }, text: string, at: number): number => {
    const char = text[at]!;
    if (char === "}") {
      frames.pop();
      return at + 1;
    }
    frame.text += char;
    if (char === "\\") return at + 2;
    if (char === '"') push({ kind: "double" });
    else if (char === "`") push({ kind: "backtick" });
    else if (char === "'") {
      // within double quotes it is a character after :- and its like, and a quote after # and %, but not in all shells
      if (!frame.quoted) push({ kind: "single" });
      else if (!WORD_OPERATOR.test(frame.text)) ambiguous = true;
    } else if (char === "$") return dollar(text, at, frame.quoted);
    return at + 1;
  };

  const inHeredoc = (frame: Frame & { kind: "heredoc" }, text: string, at: number): number => {
    const char = text[at]!;
    if (frame.document.raw) return at + 1;
    if (char === "\\") return at + 2;
    if (char === "`") push({ kind: "backtick" });
    else if (char === "$") return dollar(text, at, true);
    return at + 1;
  };

  const step = (text: string, at: number): number => {
    const frame = top();
    switch (frame.kind) {
      case "code":
        return inCode(frame, text, at);
      case "arithmetic":
        return inArithmetic(frame, text, at);
      case "brace":
        return inBraces(frame, text, at);
      case "heredoc":
        return inHeredoc(frame, text, at);
      default:
        return inQuotes(frame, text, at);
    }
  };

  const openHeredoc = (): void => {
    const document = pending.shift();
    if (document !== undefined) push({ kind: "heredoc", document, line: "" });
  };

  /** A line that ends a here-document ends it whatever is open inside. */
  const noteLines = (text: string): void => {
    const depth = frames.findIndex(({ kind }) => kind === "heredoc");
    const frame = frames[depth];
    if (frame?.kind !== "heredoc") return;
    for (const char of text) {
      if (char !== "\n") {
        frame.line += char;
        continue;
      }
      const { document, line } = frame;
      if ((document.tabs ? line.replace(/^\t+/, "") : line) === document.end) {
        frames.length = depth;
        openHeredoc();
        return;
      }
      frame.line = "";
    }
  };

  const feed = (text: string): void => {
    recent = (recent + text).slice(-300);
    for (let at = 0; at < text.length;) {
      const char = text[at]!;
      if (comment) {
        if (char === "\n") comment = false;
        else {
          at += 1;
          continue;
        }
      }
      const inside = frames.some(({ kind }) => kind === "heredoc");
      const end = step(text, at);
      if (inside) noteLines(text.slice(at, end));
      else if (char === "\n" && top().kind === "code" && pending.length > 0) openHeredoc();
      at = end;
    }
  };

  const refusal = (): string | undefined => {
    if (ambiguous) return AMBIGUOUS;
    const frame = top();
    for (const each of frames) {
      if (each.kind === "arithmetic") return ARITHMETIC;
      if (each.kind === "backtick") return "no value can stand between backquotes; write $( … ) instead";
      if (each.kind === "dollar-single") return "no value can stand inside $'…'; write '…'";
      if (each.kind === "heredoc" && each !== frame)
        return "no value can stand inside $( … ) or ${ … } in a here-document; set a variable before it and write $v";
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

  /** Whether the variable before it would take a value for a part of its name. */
  const inName = (): boolean => {
    const frame = top();
    if (comment || frame.kind === "single" || (frame.kind === "heredoc" && frame.document.raw)) return false;
    const open = OPEN_NAME.exec(recent);
    return open !== null && open[1]!.length % 2 === 0;
  };

  return {
    feed,
    placeholder(digits = false) {
      const refused = digits || (comment && !ambiguous) ? undefined : refusal();
      if (refused !== undefined) return { refused };
      if (inName())
        return {
          refused: "the variable before it would take the value for a part of its name; write it as ${name}",
        };
      recent = "";
      const document = frames.findLast(({ kind }) => kind === "heredoc");
      if (document?.kind === "heredoc") document.line += "x";
      for (const frame of frames) {
        // neither a comment nor a here-document is a part of the command's words
        if (frame.kind !== "code" || comment || document !== undefined) continue;
        frame.command.word = `${frame.command.word ?? ""}\0`;
        if (frame.command.test !== undefined) frame.command.test.valued = true;
      }
      if (comment) return "line";
      const frame = top();
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
    },
    problem: () => late,
  };
};
