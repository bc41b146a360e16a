/**
 * The simple command that a scan of shell text is in: as much of it as is needed to tell whether the shell takes a word
 * for code. Words are tracked without their quotes; a value in one is the character NUL.
 */

export interface SimpleCommand {
  position: "command" | "argument";
  /** The current word so far; undefined between words. */
  word: string | undefined;
  /** The command's name, when it is known. */
  name: string | undefined;
  last: string;
  /** The next word is the target of a redirection. */
  redirected: boolean;
  /** `command` or the like came before: its options may follow. */
  prefixed: boolean;
  /** How many `case` are open: their patterns end in a parenthesis that closes nothing. */
  cases: number;
  /** Inside `[[ … ]]`: whether a value stands there, and whether it compares numbers. */
  test: { valued: boolean; compares: boolean } | undefined;
}

export const createSimpleCommand = (): SimpleCommand => ({
  position: "command",
  word: undefined,
  name: undefined,
  last: "",
  redirected: false,
  prefixed: false,
  cases: 0,
  test: undefined,
});

/** A command follows these. */
const BEFORE_COMMAND = new Set([
  "if",
  "then",
  "elif",
  "else",
  "do",
  "while",
  "until",
  "!",
  "{",
  "}",
  "time",
  "fi",
  "done",
]);
const PREFIXES = new Set(["command", "builtin"]);
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=/;
const COMPARES = /^-(?:eq|ne|lt|le|gt|ge|v|R)$/;

/** Builtins that take their words for code, or for names of variables whose subscripts are code. */
const EVALUATING = new Set([
  "let",
  "eval",
  "trap",
  "alias",
  "declare",
  "typeset",
  "unset",
  "read",
  "mapfile",
  "readarray",
  "getopts",
]);
/** These take `NAME=value` as data, but not a name that comes from outside. */
const DECLARING = new Set(["export", "readonly", "local"]);
const NAMING = new Set(["printf", "test", "[", "wait"]);

const NUMBERS = "a value in [[ … ]] that compares numbers or names a variable is code; use [ … ] instead";

/** Ends a word, if there is one; says why a value in it or before it is not allowed there. */
export const endWord = (command: SimpleCommand): string | undefined => {
  const { word } = command;
  if (word === undefined) return undefined;
  command.word = undefined;
  if (command.redirected) {
    command.redirected = false;
    return undefined;
  }
  if (command.test !== undefined) {
    if (word === "]]") command.test = undefined;
    else if (COMPARES.test(word)) command.test.compares = true;
    return command.test?.compares === true && command.test.valued ? NUMBERS : undefined;
  }
  command.last = word;
  if (command.position === "argument") return undefined;
  if (ASSIGNMENT.test(word) || BEFORE_COMMAND.has(word)) return undefined;
  if (PREFIXES.has(word) || (command.prefixed && word.startsWith("-"))) {
    command.prefixed = true;
    return undefined;
  }
  if (word === "case") command.cases += 1;
  if (word === "esac") command.cases = Math.max(0, command.cases - 1);
  if (word === "[[") command.test = { valued: false, compares: false };
  command.position = "argument";
  command.name = word;
  return undefined;
};

export const endCommand = (command: SimpleCommand): string | undefined => {
  const problem = endWord(command);
  // `&&`, `||`, parentheses and lines may stand inside [[ … ]]
  if (command.test !== undefined) return problem;
  command.position = "command";
  command.name = undefined;
  command.last = "";
  command.redirected = false;
  command.prefixed = false;
  return problem;
};

/** The builtin that would take the current word for code, however it is quoted. */
export const evaluates = ({ name, word, last, redirected, position }: SimpleCommand): string | undefined => {
  if (position !== "argument" || name === undefined || redirected) return undefined;
  if (EVALUATING.has(name)) return name;
  if (DECLARING.has(name)) return ASSIGNMENT.test(word ?? "") && !word!.includes("[") ? undefined : name;
  return NAMING.has(name) && /^-[vRp]$/.test(last) ? `${name} ${last}` : undefined;
};

/** Whether a bracket that ends the current word begins a subscript: `a[` of an assignment, `[` in a list. */
export const beginsSubscript = ({ word = "", position }: SimpleCommand, list: boolean): boolean =>
  (position === "command" && /^[A-Za-z_][A-Za-z0-9_]*\[$/.test(word)) || (list && word === "[");
