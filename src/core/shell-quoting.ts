/**
 * Where in a shell text a placeholder stands, so that its value is put in as data: a value never ends a quote, starts a
 * command or splits into words. Text is scanned as POSIX sh reads it: quotes, backslashes, comments, $( ), ` ` and
 * here-documents.
 */
export type Quoting =
  | "none"
  | "word"
  | "single"
  | "double"
  /** The body of a here-document, and one whose delimiter is quoted (or a comment): a line break could end them. */
  | "heredoc"
  | "line"
  /** Between backquotes, where nested quoting has no dependable meaning. */
  | "backtick";

type Frame = "word" | "single" | "double" | "backtick" | "paren";

export interface ShellScanner {
  /** Takes the next piece of literal text, in order. */
  feed(text: string): void;
  /** How a value must be quoted at this point. */
  quoting(): Quoting;
}

const HEREDOC = /^<<(-?)[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([^\s;&|<>()'"]+))/;

interface Heredoc {
  readonly end: string;
  readonly tabs: boolean;
  /** A quoted delimiter: nothing is expanded in the body, so nothing can be escaped. */
  readonly raw: boolean;
}

export const shellScanner = (): ShellScanner => {
  const frames: Frame[] = ["word"];
  const pending: Heredoc[] = [];
  let body: Heredoc | undefined;
  let line = "";
  let comment = false;
  let before = "\n";

  const top = (): Frame => frames[frames.length - 1]!;

  const startBody = (): void => {
    body = pending.shift();
    line = "";
  };

  /** In a here-document only whole lines matter: one of them ends it. */
  const inBody = (char: string): void => {
    if (char !== "\n") {
      line += char;
      return;
    }
    if ((body!.tabs ? line.replace(/^\t+/, "") : line) === body!.end) startBody();
    line = "";
  };

  const toggle = (frame: Frame): void => {
    if (top() === frame) frames.pop();
    else frames.push(frame);
  };

  const inCode = (text: string, at: number): number => {
    const char = text[at]!;
    const frame = top();
    if (frame === "single") {
      if (char === "'") frames.pop();
      return at + 1;
    }
    if (char === "\\") return at + 2;
    if (char === '"') toggle("double");
    else if (char === "`") toggle("backtick");
    else if (char === "$" && text[at + 1] === "(") {
      frames.push("paren");
      return at + 2;
    } else if (frame !== "double") {
      if (char === "'") frames.push("single");
      else if (char === "(") frames.push("paren");
      else if (char === ")" && frame === "paren") frames.pop();
      else if (char === "#" && /[\s;&|()]/.test(before)) comment = true;
      else if (char === "<" && text[at + 1] === "<") {
        const [matched, dash, single, double, bare] = HEREDOC.exec(text.slice(at, at + 200)) ?? [];
        if (matched === undefined) return at + 2;
        pending.push({ end: single ?? double ?? bare!, tabs: dash === "-", raw: bare === undefined });
        return at + matched.length;
      }
    }
    return at + 1;
  };

  return {
    feed(text) {
      for (let at = 0; at < text.length;) {
        const char = text[at]!;
        if (body !== undefined) {
          inBody(char);
          at++;
          continue;
        }
        if (char === "\n" && top() !== "single" && top() !== "double") {
          comment = false;
          if (pending.length > 0) startBody();
          before = char;
          at++;
        } else if (comment) at++;
        else {
          const next = inCode(text, at);
          before = text[Math.min(next, text.length) - 1]!;
          at = next;
        }
      }
    },
    quoting() {
      // A value stands here: it is part of a line, and what follows it starts no comment.
      line += "x";
      before = "x";
      if (body !== undefined) return body.raw ? "line" : "heredoc";
      if (comment) return "line";
      if (frames.includes("backtick")) return "backtick";
      const frame = top();
      return frame === "single" || frame === "double" ? frame : "word";
    },
  };
};

/** Whether a text means itself to the shell, unquoted. */
const isPlain = (value: string): boolean => {
  if (value.length === 0) return false;
  for (let i = 0; i < value.length; i++) {
    const c = value.charCodeAt(i);
    const plain =
      (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 43 && c <= 58) || c === 95 || c === 37 || c === 64;
    if (!plain) return false;
  }
  return true;
};

/** A value as data for the place it goes to. Throws a RangeError where no quoting exists for it. */
export const quoteFor = (value: string, quoting: Quoting): string => {
  if (quoting === "none") return value;
  if (isPlain(value)) return value;
  if ((quoting === "heredoc" || quoting === "line") && value.includes("\n")) {
    throw new RangeError("a value with a line break cannot stand in a here-document or comment; use $SLIPWAY_ITEM");
  }
  if (quoting === "line") return value;
  if (quoting === "word") return `'${value.replaceAll("'", `'\\''`)}'`;
  if (quoting === "single") return value.replaceAll("'", `'\\''`);
  return value.replaceAll(quoting === "double" ? /[\\"$`]/g : /[\\$`]/g, String.raw`\$&`);
};
