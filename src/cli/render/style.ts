import { stateWord } from "../../core/state-words.ts";

/** Colours, or none: each function leaves its text as it is when colour is off. */
export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const code =
  (open: number, close: number) =>
  (text: string): string =>
    text === "" ? "" : `\u001b[${open}m${text}\u001b[${close}m`;

const COLORED: Style = {
  bold: code(1, 22),
  dim: code(2, 22),
  red: code(31, 39),
  green: code(32, 39),
  yellow: code(33, 39),
  cyan: code(36, 39),
};

const same = (text: string): string => text;
export const PLAIN: Style = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };

export const styleFor = (color: boolean): Style => (color ? COLORED : PLAIN);

/** https://no-color.org: any non-empty NO_COLOR switches colour off; a terminal that is `dumb` has none. */
export const wantsColor = (env: Readonly<NodeJS.ProcessEnv>, isTerminal: boolean, allowed: boolean): boolean =>
  allowed && isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";

/** Whether the locale can show more than ASCII. */
export const isUnicode = (env: Readonly<NodeJS.ProcessEnv>): boolean =>
  /utf-?8/i.test(env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "");

/** What people call a state, in the colour of what it means. */
export const stateColored = (state: string, style: Style): string => {
  const word = stateWord(state);
  if (word === "done") return style.green(word);
  if (word === "failed" || word === "lost") return style.red(word);
  if (word === "cancelled") return style.yellow(word);
  return word === "running" ? style.cyan(word) : word;
};

/** A column's state: its word, and the padded word in its colour. */
export const stateColumn = <Row extends { readonly state: string }>(style: Style) => ({
  title: "STATE",
  value: (row: Row): string => stateWord(row.state),
  paint: (text: string, row: Row): string => text.replace(stateWord(row.state), stateColored(row.state, style)),
});
