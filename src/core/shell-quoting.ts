/**
 * A value as data for its place in shell text: it never ends a quote, starts a command or splits into words.
 * shell-scanner.ts finds out which place it is.
 */
export type Quoting =
  | "none"
  | "word"
  | "single"
  | "double"
  /** `${name:-…}` within double quotes. */
  | "brace"
  /** The body of a here-document, and one whose delimiter is quoted (or a comment): a line break could end them. */
  | "heredoc"
  | "line";

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

const ESCAPED = { double: /[\\"$`]/g, brace: /[\\"$`}]/g, heredoc: /[\\$`]/g };

/** A value as data for the place it goes to. Throws a RangeError where no quoting exists for it. */
export const quoteFor = (value: string, quoting: Quoting): string => {
  if (quoting === "none") return value;
  if (isPlain(value)) return value;
  if ((quoting === "heredoc" || quoting === "line") && value.includes("\n")) {
    throw new RangeError("a value with a line break cannot go into a here-document or comment; use $SLIPWAY_ITEM");
  }
  if (quoting === "line") return value;
  if (quoting === "word") return `'${value.replaceAll("'", `'\\''`)}'`;
  if (quoting === "single") return value.replaceAll("'", `'\\''`);
  return value.replaceAll(ESCAPED[quoting], String.raw`\$&`);
};
