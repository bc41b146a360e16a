import { homedir } from "node:os";
import path from "node:path";
import { type Client, connect } from "../client/index.ts";
import { programFor, withHome } from "./hints.ts";
import type { Output } from "./output.ts";
import { isUnicode, type Style, styleFor, wantsColor } from "./render/style.ts";

/** Options that every command takes, before or after its name. */
export interface Globals {
  readonly home?: string | undefined;
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
  readonly color?: boolean | undefined;
  readonly debug?: boolean | undefined;
}

/** What a verb works with. */
export interface Context {
  /** Absolute. */
  readonly home: string;
  readonly json: boolean;
  readonly quiet: boolean;
  /** Colours of standard output and of standard error. */
  readonly style: Style;
  readonly errorStyle: Style;
  readonly unicode: boolean;
  readonly out: Output;
  readonly err: Output;
  /** Where Slipway is installed: holds dist/ and package.json. */
  readonly root: string;
  readonly client: Client;
  /** The same for what only looks, and does not follow: where no server runs, the journal answers, and a note says so. */
  readonly reader: Client;
  /** How this command's home is named on a command line: `slipway`, or `slipway --home DIR`. */
  readonly program: string;
  /** Something that helps a person and that scripts do not read: standard error, unless --quiet or --json. */
  note(text: string): void;
  /** One JSON document on a line of its own. */
  printJson(value: unknown): void;
  /** `value` with --json, else `text()`. */
  answer(value: unknown, text: () => string): void;
  /** Lets go of connections. */
  close(): void;
}

export interface Surroundings {
  readonly root: string;
  readonly out: Output;
  readonly err: Output;
  readonly env: Readonly<NodeJS.ProcessEnv>;
}

/** The directory that holds all state of one server. */
export const homeOf = (given: string | undefined, env: Readonly<NodeJS.ProcessEnv>): string =>
  path.resolve(given ?? (env["SLIPWAY_HOME"] || path.join(homedir(), ".slipway")));

export const createContext = ({ root, out, err, env }: Surroundings, globals: Globals): Context => {
  const home = homeOf(globals.home, env);
  const json = globals.json === true;
  const quiet = globals.quiet === true;
  const color = globals.color !== false;
  const program = programFor(globals.home === undefined ? undefined : home);
  const printJson = (value: unknown): void => out.line(JSON.stringify(value));
  let client: Client | undefined;
  let reader: Client | undefined;
  const note = (text: string): void => {
    if (!quiet && !json) err.line(withHome(text, program));
  };
  return {
    home,
    json,
    quiet,
    style: styleFor(wantsColor(env, out.isTerminal, color)),
    errorStyle: styleFor(wantsColor(env, err.isTerminal, color)),
    unicode: isUnicode(env),
    out,
    err,
    root,
    program,
    get client() {
      client ??= connect({ home });
      return client;
    },
    get reader() {
      reader ??= connect({
        home,
        withoutServer: async () => {
          const { lookTransport } = await import("./look.ts");
          const through = await lookTransport(home, root);
          if (through !== undefined) note(`no server runs for ${home}: this is what its journal says`);
          return through;
        },
      });
      return reader;
    },
    note,
    printJson,
    answer: (value, text) => {
      if (json) printJson(value);
      else out.line(text());
    },
    close: () => {
      client?.close();
      reader?.close();
    },
  };
};
