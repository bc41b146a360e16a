import { STATUS } from "./config.ts";

/** What was asked of qsub: its options, from the command line and from the script's directives. */

const WITH_VALUE = "aAcCejJkKlmMNopPqrRSuvW";
const FLAGS = "hIVXzf";

export class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export type Option = readonly [flag: string, value: string];

/** Options up to the first word that is not one; what follows `--` is a command. */
export const splitOptions = (argv: readonly string[]): { options: Option[]; rest: string[]; isCommand: boolean } => {
  const options: Option[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at]!;
    if (word === "--") return { options, rest: argv.slice(at + 1), isCommand: true };
    if (!word.startsWith("-") || word === "-") return { options, rest: argv.slice(at), isCommand: false };
    for (let letter = 1; letter < word.length; letter += 1) {
      const flag = word[letter]!;
      if (WITH_VALUE.includes(flag)) {
        const value = word.slice(letter + 1) || argv[(at += 1)];
        if (value === undefined) throw new Refusal(2, `qsub: option requires an argument -- '${flag}'`);
        options.push([flag, value]);
        break;
      }
      if (!FLAGS.includes(flag)) throw new Refusal(2, `qsub: invalid option -- '${flag}'`);
      options.push([flag, ""]);
    }
  }
  return { options, rest: [], isCommand: false };
};

/** Splits a directive's line: quotes keep blanks together. */
const wordsOf = (line: string): string[] =>
  Array.from(line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g), ([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2"),
  );

/** Options of the `#PBS` lines before the first line that is not a comment. */
export const directivesOf = (script: string, mark = "#PBS"): Option[] => {
  const options: Option[] = [];
  for (const line of script.split("\n")) {
    if (line.startsWith(mark)) options.push(...splitOptions(wordsOf(line.slice(mark.length))).options);
    else if (line.trim() !== "" && !line.startsWith("#") && !line.startsWith(":")) break;
  }
  return options;
};

export interface QsubRequest {
  readonly name?: string;
  readonly project?: string;
  readonly queue?: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly join: string;
  readonly keep: string;
  readonly hold: boolean;
  readonly rerunable: boolean;
  readonly umask?: string;
  readonly shell?: string;
  readonly after?: string;
  readonly depend?: string;
  readonly array?: string;
  readonly allVariables: boolean;
  readonly variables: readonly string[];
  readonly resources: ReadonlyMap<string, string>;
}

const checkName = (name: string): string => {
  if (!/^[A-Za-z0-9._+-]{1,230}$/.test(name)) throw new Refusal(1, "qsub: illegal -N value");
  return name;
};

const checkProject = (project: string): string => {
  if (/[/[\]";:|<>+,?*]/.test(project))
    throw new Refusal(STATUS.badValue, `qsub: Illegal attribute or resource value for project`);
  return project;
};

/** Resources for the whole job, beside `select` or instead of it. */
const OF_JOB = new Set(["walltime", "cput", "place", "select", "nodes", "software", "min_walltime", "max_walltime"]);
const OF_CHUNK = new Set([
  "ncpus",
  "mem",
  "vmem",
  "ngpus",
  "mpiprocs",
  "ompthreads",
  "host",
  "vnode",
  "arch",
  "nodect",
]);

const SIZE = /^\d+(?:[kmgtp]?[bw])?$/i;
const TIME = /^\d+(?::\d{1,2}){0,2}$/;

export const checkResource = (name: string, value: string, custom: ReadonlySet<string>): void => {
  if (!OF_JOB.has(name) && !OF_CHUNK.has(name) && !custom.has(name))
    throw new Refusal(STATUS.unknownResource, `qsub: Unknown resource: ${name}`);
  const isWrong =
    ((name === "walltime" || name === "cput") && !TIME.test(value)) ||
    ((name === "mem" || name === "vmem") && !SIZE.test(value)) ||
    (["ncpus", "ngpus", "mpiprocs", "ompthreads"].includes(name) && !/^\d+$/.test(value)) ||
    (name === "place" && !/^(?:pack|scatter|vscatter|free|excl|exclhost|shared|group=\w+)(?::[\w=]+)*$/.test(value)) ||
    value === "";
  if (isWrong)
    throw new Refusal(STATUS.badValue, `qsub: Illegal attribute or resource value for Resource_List.${name}`);
};

const readResources = (values: readonly string[], custom: ReadonlySet<string>): Map<string, string> => {
  const found = new Map<string, string>();
  for (const value of values)
    for (const part of value.split(",")) {
      const [name = "", ...rest] = part.split("=");
      // the command line comes first and wins
      if (!found.has(name)) found.set(name, rest.join("="));
    }
  for (const [name, value] of found) checkResource(name, value, custom);
  if (found.has("select") || found.has("place"))
    for (const name of found.keys())
      if (!OF_JOB.has(name))
        throw new Refusal(
          STATUS.conflictingResource,
          `qsub: "-lresource=" cannot be used with "select" or "place", resource is: ${name}`,
        );
  return found;
};

export const readRequest = (options: readonly Option[], custom: ReadonlySet<string>): QsubRequest => {
  const all = (flag: string): string[] => options.filter(([name]) => name === flag).map(([, value]) => value);
  const first = (flag: string): string | undefined => all(flag)[0];
  const attribute = (name: string): string | undefined => {
    for (const text of all("W"))
      for (const part of text.split(",")) if (part.startsWith(`${name}=`)) return part.slice(name.length + 1);
    return undefined;
  };
  const known = <T>(key: string, value: T | undefined): object => (value === undefined ? {} : { [key]: value });
  const [name, project] = [first("N"), first("P")];
  return {
    ...known("name", name === undefined ? undefined : checkName(name)),
    ...known("project", project === undefined ? undefined : checkProject(project)),
    ...known("queue", first("q")),
    ...known("stdout", first("o")),
    ...known("stderr", first("e")),
    ...known("umask", attribute("umask")),
    ...known("shell", first("S")),
    ...known("after", first("a")),
    ...known("depend", attribute("depend")),
    ...known("array", first("J")),
    join: first("j") ?? "n",
    keep: first("k") ?? "n",
    hold: all("h").length > 0,
    rerunable: first("r") !== "n",
    allVariables: all("V").length > 0,
    variables: all("v").flatMap((text) => text.split(",")),
    resources: readResources(all("l"), custom),
  };
};

/** `-v A,B`: refuses values that a list with commas cannot carry, for which the real one fails. */
export const readVariables = (
  names: readonly string[],
  env: Readonly<Record<string, string>>,
): [name: string, value: string][] =>
  names.map((text) => {
    const at = text.indexOf("=");
    const pair: [string, string] = at < 0 ? [text, env[text] ?? ""] : [text.slice(0, at), text.slice(at + 1)];
    // eslint-disable-next-line no-control-regex
    if (/[\n"'\\,]|[^\u0000-\u007f]/.test(pair[1]))
      throw new Refusal(1, `qsub: cannot process the value of ${pair[0]}`);
    return pair;
  });
