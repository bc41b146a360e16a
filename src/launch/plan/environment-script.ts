import { quoteFor } from "../../core/shell-quoting.ts";

/** Values are in single quotes and mean themselves: what a checker suspects in them is data. */
export const LITERAL = "# shellcheck disable=SC2016,SC1003,SC1110,SC1111,SC1112,SC1113,SC2089,SC2090";

/** POSIX shell that gives each variable exactly its value: quotes, line breaks, dollars and all. */
export const environmentScript = (env: Readonly<Record<string, string>>): string =>
  [
    "#!/bin/sh",
    LITERAL,
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoteFor(value, "word")}`),
    "",
  ].join("\n");

/** Names to which some shell gives a meaning of its own: it would refuse them, or change their values. */
const SPECIAL =
  /^(?:_|UID|EUID|PPID|GROUPS|SHLVL|SHELLOPTS|BASHOPTS|BASH_[A-Z0-9_]+|BASHPID|RANDOM|SRANDOM|SECONDS|LINENO|HISTCMD|EPOCHSECONDS|EPOCHREALTIME|DIRSTACK|FUNCNAME|PIPESTATUS|OPTIND|PWD|OLDPWD)$/;

/** What a shell can set, and what env must pass to the command. */
export const splitEnvironment = (
  env: Readonly<Record<string, string>>,
): { readonly plain: Readonly<Record<string, string>>; readonly special: Readonly<Record<string, string>> } => {
  const entries = Object.entries(env);
  return {
    plain: Object.fromEntries(entries.filter(([name]) => !SPECIAL.test(name))),
    special: Object.fromEntries(entries.filter(([name]) => SPECIAL.test(name))),
  };
};

/** A command as words of a shell line. */
export const commandWords = (words: readonly string[]): string => words.map((text) => quoteFor(text, "word")).join(" ");

/** Before a function that only a trap calls. */
/** Waits for `$child` whatever signals come meanwhile; its status is `$status`. */
export const WAIT_FOR_CHILD = [
  'wait "$child"',
  "status=$?",
  'while kill -0 "$child" 2>/dev/null; do',
  '  wait "$child"',
  "  status=$?",
  "done",
] as const;

export const BY_TRAP = "# shellcheck disable=SC2317";
