/** The line of a file that an error is about, and what to write there instead. */
export interface Excerpt {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The line itself, cut where it is long. */
  readonly text: string;
}

const LONGEST = 300;

/** Where each line of a text begins. */
export const lineStarts = (text: string): number[] => {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
};

/** Line and column of an offset, counted from 1, and where its line begins. */
export const placeIn = (
  starts: readonly number[],
  offset: number,
): { readonly line: number; readonly column: number; readonly start: number } => {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - starts[low]! + 1, start: starts[low]! };
};

/** `lineStart`: where the line begins in the text. */
export const excerptOf = (text: string, lineStart: number, file: string, line: number, column: number): Excerpt => {
  const end = text.indexOf("\n", lineStart);
  const whole = text.slice(lineStart, end < 0 ? undefined : end).replace(/\r$/, "");
  const shown = Math.min(column, whole.length + 1);
  return { file, line, column: shown, text: whole.length > LONGEST ? `${whole.slice(0, LONGEST)}…` : whole };
};

/** A key or the dash of a list, and what follows. */
const VALUE = /^(\s*(?:-\s+)*(?:[A-Za-z_][\w.-]*\s*:\s+)?)(.*)$/;
/** Text that YAML takes for something else when it begins so. */
const BEGINS = /^(?:\{[A-Za-z_][\w.]*\}|\[\s|[@`%&*!|>])/;

const withoutComment = (text: string): string => text.replace(/\s+#.*$/, "").trimEnd();

/** As YAML reads it back: in single quotes if it holds double ones. */
const inQuotes = (text: string): string =>
  text.includes('"') && !text.includes("'") ? `'${text}'` : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/**
 * What to write where a line was meant as text and YAML reads something else: `run: {item} --flag` begins a map, and
 * `run: echo a: b` holds one. Undefined where nothing of that kind stands there.
 */
export const quoteThis = (line: string): string | undefined => {
  const [, before = "", rest = ""] = VALUE.exec(line) ?? [];
  const value = withoutComment(rest);
  // inside a map or list in braces, only the braces themselves are meant
  const inner = /^[{[]/.test(value) && !BEGINS.test(value);
  if (inner) {
    const [, placeholder] = /[:,[]\s*([^\s,:[\]{}"']*\{[A-Za-z_][\w.]*\}[^,\]}]*)/.exec(value) ?? [];
    return placeholder === undefined ? undefined : `Quote this: ${inQuotes(placeholder.trim())}`;
  }
  if (value === "" || /^["']/.test(value)) return undefined;
  if (BEGINS.test(value)) return `Quote this: ${inQuotes(value)}`;
  return before.trim() !== "" && /:\s/.test(value) ? `Quote this: ${inQuotes(value)}` : undefined;
};

const TABS = "Indent with spaces: YAML does not allow tabs there.";

/** What to do about a syntax error in this line. */
export const syntaxRemedy = (line: string, message: string): string => {
  if (/^\s*\t/.test(line) || /tab/i.test(message)) return TABS;
  const quote = quoteThis(line);
  if (quote !== undefined) return quote;
  if (/quote|Missing closing/i.test(message)) return "Close the quotes, or write the text with | on the lines below.";
  if (/indent/i.test(message)) return "Keys of one map begin in the same column, and so do the dashes of one list.";
  return "Correct the file and try again.";
};
