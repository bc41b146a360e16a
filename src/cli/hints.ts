import path from "node:path";
import { commandLine } from "./render/text.ts";

/** Commands that we suggest are true when they are pasted: they name the home where this command line did. */

/** `slipway`, or `slipway --home DIR` where --home was given. */
export const programFor = (home: string | undefined): string =>
  home === undefined ? "slipway" : `slipway --home ${commandLine([home])}`;

/** The same for every command in backquotes in a text. */
export const withHome = (text: string, program: string): string =>
  program === "slipway" ? text : text.replaceAll(/`slipway (?=[a-z])/g, `\`${program} `);

/** The home as given before `--`, absolute; the one nearest the end wins. */
export const homeIn = (argv: readonly string[]): string | undefined => {
  const end = argv.indexOf("--");
  const words = argv.slice(0, end < 0 ? undefined : end);
  const given = words.flatMap((word, i) =>
    word === "--home" ? (words[i + 1] ?? []) : word.startsWith("--home=") ? word.slice("--home=".length) : [],
  );
  return given.length === 0 ? undefined : path.resolve(given.at(-1)!);
};
