import stringWidth from "string-width";

/** How values look to people. Nothing here writes; everything is a function from values to text. */

/**
 * Names, reasons and output come from anywhere: control characters, which could move the cursor or recolour the
 * terminal, are shown escaped.
 */
export const printable = (text: string): string =>
  // eslint-disable-next-line no-control-regex -- control characters are what this is about
  text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (char) =>
    char === "\n"
      ? "\\n"
      : char === "\t"
        ? " "
        : char === "\r"
          ? "\\r"
          : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

// eslint-disable-next-line no-control-regex -- colour codes begin with one
const COLOURS = /\u001b\[[\d;]*m/g;
const PLAIN = /^[ -~]*$/;

/** Columns a text takes on a terminal: none for colour codes and combining marks, two for wide characters and emoji. */
export const columnsOf = (text: string): number => {
  const shown = text.includes("\u001b") ? text.replace(COLOURS, "") : text;
  return PLAIN.test(shown) ? shown.length : stringWidth(shown);
};

let characters: Intl.Segmenter | undefined;

/** At most `columns` wide, an ellipsis where something is missing. The text must hold no colour codes. */
export const clipped = (text: string, columns: number, ellipsis = "…"): string => {
  if (columnsOf(text) <= columns) return text;
  let kept = "";
  let used = columnsOf(ellipsis);
  if (used > columns) return "";
  // what people see as one character, such as a flag, is kept or left out whole
  for (const { segment } of (characters ??= new Intl.Segmenter()).segment(text)) {
    used += columnsOf(segment);
    if (used > columns) break;
    kept += segment;
  }
  return kept + ellipsis;
};

export const padded = (text: string, columns: number, right = false): string => {
  const room = " ".repeat(Math.max(0, columns - columnsOf(text)));
  return right ? room + text : text + room;
};

const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");

/** Seconds as people say them: `3 ms`, `0.42 s`, `12 s`, `3m 05s`, `2h 07m`, `3d 04h`. */
export const duration = (seconds: number): string => {
  if (!Number.isFinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h ${two((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86_400)}d ${two((whole % 86_400) / 3600)}h`;
};

/** Seconds between two ISO times; `to` may be a clock's milliseconds. */
export const secondsBetween = (from: string | null, to: string | number | null): number | undefined => {
  if (from === null || to === null) return undefined;
  const seconds = ((typeof to === "number" ? to : Date.parse(to)) - Date.parse(from)) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
};

/** An ISO time in the reader's own time zone: `2026-11-15 14:03:22`. */
export const localTime = (iso: string | null): string => {
  if (iso === null) return "-";
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return printable(iso);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

/** `1234567` → `1,234,567`. */
export const count = (value: number): string =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");

export const plural = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A rate with as many digits as mean something. */
export const perSecond = (rate: number): string =>
  rate >= 100 ? count(rate) : rate >= 10 ? rate.toFixed(0) : rate >= 1 ? rate.toFixed(1) : rate.toFixed(2);

/** A command as it would be typed. */
export const commandLine = (argv: readonly string[]): string =>
  argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
