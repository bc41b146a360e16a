import type { Command } from "commander";
import { Option } from "commander";
import type { Context, Globals } from "./context.ts";

/** Runs a verb's work with its context and turns what it returns into the exit status. */
export type Handler = (context: Context, args: readonly string[], command: Command) => Promise<number | void>;

/** What a verb's file gets to define itself with. */
export interface Cli {
  /** Makes a commander action of a handler. */
  readonly act: (handler: Handler) => (...given: unknown[]) => Promise<void>;
  /** The whole tree, every verb defined: completion needs it. */
  readonly everything: () => Promise<Command>;
}

/** One file per verb exports this as `define`: arguments, options, help and action of a command already named. */
export type Define = (command: Command, cli: Cli) => void;

/** Adds the global options, so that they may come after the verb too. */
export const withGlobals = (command: Command): Command => {
  const options = [
    new Option("--home <dir>", "the directory of the server's state (default: $SLIPWAY_HOME, else ~/.slipway)"),
    new Option("--json", "print JSON; errors too, on standard error"),
    new Option("-q, --quiet", "print only what was asked for"),
    new Option("--no-color", "no colours (NO_COLOR does the same)"),
    new Option("--debug", "show stack traces with errors"),
  ];
  for (const option of options) command.addOption(option.helpGroup("Global options:"));
  return command;
};

/** Global options as given anywhere on the line; the one nearest the end wins. */
export const globalsOf = (command: Command): Globals => {
  let found: Globals = {};
  for (let at: Command | null = command; at !== null; at = at.parent) {
    const { home, json, quiet, color, debug } = at.opts<Globals>();
    found = {
      home: found.home ?? home,
      json: found.json ?? json,
      quiet: found.quiet ?? quiet,
      color: found.color === false ? false : color,
      debug: found.debug ?? debug,
    };
  }
  return found;
};

/** A sub-command of a noun (`pilots list`) with the global options and its summary. */
export const subcommand = (parent: Command, name: string, summary: string): Command =>
  withGlobals(parent.command(name).summary(summary).description(summary));

/** The terminal's columns; undefined where nothing is cut: in a file or a pipe, and with --wide. */
export const widthFor = ({ out }: Pick<Context, "out">, command: Command): number | undefined =>
  command.opts<{ wide?: boolean }>().wide === true ? undefined : out.columns();

/** Examples at the end of a help text. */
export const examples = (lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`;
