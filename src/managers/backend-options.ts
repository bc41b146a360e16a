import { parseResource } from "../core/quantities.ts";
import { splitWords } from "../core/shell-words.ts";
import { suggest } from "../config/nearest.ts";
import type { BackendOptions, RefuseOption } from "./task-dialect.ts";
import { lineProblem } from "./task-keys.ts";

/** What `-b` may say to a manager: a table of options, from which its reading and its usage follow. */
export interface BackendOption {
  /** `-c`, `--cpus-per-task`: at least one of them. */
  readonly letter?: string;
  readonly name?: string;
  /** What stands for its value in the usage. */
  readonly value: string;
  readonly about: string;
  /** Puts the value where it belongs; what is wrong goes to `refuse`, which throws. */
  take(value: string, out: Collected, refuse: (detail: string) => never): void;
}

export interface Collected {
  readonly resources: Record<string, number>;
  readonly keys: Record<string, string>;
}

/** An amount instead of the task's own. */
export const amount =
  (resource: string): BackendOption["take"] =>
  (value, { resources }, refuse) => {
    try {
      resources[resource] = parseResource(resource, value);
    } catch (error) {
      refuse((error as Error).message);
    }
  };

/** A key of the task. */
export const key =
  (name: string): BackendOption["take"] =>
  (value, { keys }, refuse) => {
    const problem = lineProblem(value);
    if (problem !== undefined) refuse(problem);
    keys[name] = value;
  };

const spelled = ({ letter, name }: BackendOption): string[] => [
  ...(letter === undefined ? [] : [`-${letter}`]),
  ...(name === undefined ? [] : [`--${name}`]),
];

export const usageOf = (title: string, options: readonly BackendOption[]): string => {
  const rows = [
    ...options.map((option) => [`${spelled(option).join(", ")} ${option.value}`, option.about]),
    ["-h, --help", "print this"],
  ];
  const width = Math.max(...rows.map(([left]) => left!.length));
  return [
    `-b "OPTIONS": options for ${title}, separated by blanks and quoted as in a shell`,
    ...rows.map(([left, about]) => `  ${left!.padEnd(width)}  ${about}`),
    "",
  ].join("\n");
};

const shown = (text: string): string => (text.length > 60 ? `${text.slice(0, 57)}...` : text);

/** The option that a word begins, and the value that is in the word already. */
const readWord = (
  word: string,
  options: readonly BackendOption[],
  refuse: RefuseOption,
): { readonly option: BackendOption; readonly as: string; readonly value?: string } => {
  const names = options.flatMap(spelled);
  const equals = word.indexOf("=");
  const as = word.startsWith("--") ? (equals < 0 ? word : word.slice(0, equals)) : word.slice(0, 2);
  const option = options.find((one) => spelled(one).includes(as));
  if (option === undefined)
    return word.startsWith("-") && word.length > 1
      ? refuse(shown(as), `is not one of ${names.join(" ")}${suggest(as, names)}`)
      : refuse(shown(word), `is not an option; ${names.join(" ")} are`);
  const value = word.startsWith("--") ? (equals < 0 ? undefined : word.slice(equals + 1)) : word.slice(2) || undefined;
  return { option, as, ...(value === undefined ? {} : { value }) };
};

/** Of several values of one option the last counts. */
export const readBackend = (
  text: string,
  options: readonly BackendOption[],
  refuse: RefuseOption,
): Omit<BackendOptions, "notices"> => {
  const words = splitWords(text) ?? refuse(shown(text), "has an open quote");
  const out: Collected = { resources: {}, keys: {} };
  let help = false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!;
    if (word === "-h" || word === "--help") {
      help = true;
      continue;
    }
    // in the same word, else in the next one
    const { option, as, value = words[(at += 1)] } = readWord(word, options, refuse);
    if (value === undefined || value === "") refuse(as, "needs a value");
    else option.take(value, out, (detail) => refuse(as, detail));
  }
  return { help, ...out };
};
