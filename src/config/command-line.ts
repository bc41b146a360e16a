import { basename } from "node:path";
import { SlipwayError } from "../errors.ts";
import { plainRun } from "./plain-tasks.ts";
import type { RunDocument } from "./run-file.ts";
import type { DefaultsInput, EachInput } from "./run-schema.ts";
import { badValue, type Path, type Source } from "./source.ts";
import { type ManagerKey, namesNodes } from "./task-job-keys.ts";
import { nameFrom } from "./text-rules.ts";

/** What is typed after `run` and `submit`, as the keys of a file. Nearly always that is plain, and needs no schema. */

/** The options of `run` and `submit`, by their long names; values as typed. Options given many times are lists. */
export interface CommandOptions {
  readonly name?: string;
  readonly array?: string;
  readonly each?: readonly string[];
  readonly colsep?: string;
  readonly "each-line"?: string;
  readonly "from-json"?: string;
  readonly stdin?: boolean;
  readonly resource?: readonly string[];
  readonly env?: readonly string[];
  readonly after?: string | readonly string[];
  readonly "max-fails"?: string | number;
  readonly export?: string;
  /** Any key that tasks and defaults share: cpus, mem, time-limit, cluster… */
  readonly [task: string]: unknown;
}

export const ITEM_OPTIONS = ["array", "each", "each-line", "from-json", "stdin"] as const;
/** Keys of tasks that are typed as they are; what managers alone understand is typed with `--backend`. */
const TASK_OPTIONS = Object.keys({
  cpus: true,
  gpus: true,
  mem: true,
  tmp: true,
  nodes: true,
  ranks: true,
  "cpus-per-rank": true,
  "gpus-per-rank": true,
  "rank-launcher": true,
  "time-limit": true,
  "time-request": true,
  priority: true,
  retries: true,
  "retry-delay": true,
  "mem-retry": true,
  cwd: true,
  stdout: true,
  stderr: true,
  append: true,
  skip: true,
  cluster: true,
  queue: true,
  via: true,
  local: true,
  pin: true,
  executor: true,
  backend: true,
  in: true,
  out: true,
} satisfies Record<Exclude<keyof DefaultsInput, ManagerKey | "resources" | "env">, true>);
const WHOLE = ["nodes", "ranks", "priority", "retries", "mem-retry", "max-fails"];

/** `timeLimit` as `time-limit`, which is how files and users spell it; options that were not given are left out. */
export const optionsFrom = (parsed: Readonly<Record<string, unknown>>): CommandOptions =>
  Object.fromEntries(
    Object.entries(parsed)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  );

export const usage = (detail: string): never => {
  throw new SlipwayError("usage", { detail });
};

const list = (value: unknown): string[] => (value === undefined ? [] : [value].flat().map(String));

/** `NAME=VALUE` options as a map. */
const pairs = (flag: string, given: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    given.map((text): [string, string] => {
      const at = text.indexOf("=");
      return at < 1
        ? usage(`${flag} takes NAME=VALUE, not '${text.slice(0, 60)}'`)
        : [text.slice(0, at), text.slice(at + 1)];
    }),
  );

/** Whole numbers as numbers; anything else stays text and is refused with its place. */
const typed = (key: string, value: unknown): unknown =>
  WHOLE.includes(key) && typeof value === "string" && /^[-+]?\d{1,15}$/.test(value.trim()) ? Number(value) : value;

/** `--each seed=1-10 --each model=a,b`: ranges of numbers, everything else is a list. */
const matrixOf = (given: readonly string[]): NonNullable<EachInput["matrix"]> => {
  const matrix: Record<string, string | string[]> = {};
  for (const text of given) {
    const at = text.indexOf("=");
    if (at < 1) usage(`--each takes NAME=1-10 or NAME=a,b,c, not '${text.slice(0, 60)}'`);
    const [name, values] = [text.slice(0, at), text.slice(at + 1)];
    if (Object.hasOwn(matrix, name)) usage(`--each ${name} is given twice; write all its values in one: ${name}=a,b,c`);
    const list = values.split(",");
    if (list.includes("")) usage(`--each ${name} has an empty value: '${text.slice(0, 60)}'`);
    matrix[name] = /^[\d,:\s-]+$/.test(values) ? values : list;
  }
  return matrix;
};

const eachOf = (options: CommandOptions): EachInput | undefined => {
  const given = ITEM_OPTIONS.filter((key) => options[key] !== undefined && options[key] !== false);
  if (given.length > 1) usage(`--${given.join(" and --")} cannot be used together`);
  const { colsep } = options;
  const columns = colsep === undefined ? {} : { colsep };
  if (colsep !== undefined && options["each-line"] === undefined && options.stdin !== true)
    usage("--colsep goes with --each-line or --stdin");
  if (options.array !== undefined) return { array: options.array };
  if (options.each !== undefined) return { matrix: matrixOf(list(options.each)) };
  if (options["each-line"] !== undefined) return { lines: options["each-line"], ...columns };
  if (options["from-json"] !== undefined) return { json: options["from-json"] };
  return options.stdin === true ? { lines: "-", ...columns } : undefined;
};

/** Keys that go into a task. */
export const taskPart = (options: CommandOptions): Record<string, unknown> => {
  const part: Record<string, unknown> = {};
  if (namesNodes(options["nodes"] as string | undefined))
    badValue(commandLine, ["nodes"], "must be a whole number", 'Names of nodes go to the manager: -b "-w NAMES".');
  for (const key of ["outputs", "inputs"]) if (options[key] !== undefined) part[key] = list(options[key]);
  for (const key of TASK_OPTIONS) if (options[key] !== undefined) part[key] = typed(key, options[key]);
  const resources = pairs("--resource", list(options.resource));
  const env = pairs("--env", list(options.env));
  if (Object.keys(resources).length > 0) part["resources"] = resources;
  if (Object.keys(env).length > 0) part["env"] = env;
  return part;
};

/** Keys that go to the top of a run. `--after 3,4` names runs. */
export const runPart = (options: CommandOptions): Record<string, unknown> => {
  const after = list(options.after).flatMap((text) => text.split(","));
  return {
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(options["max-fails"] === undefined ? {} : { "max-fails": typed("max-fails", options["max-fails"]) }),
    ...(options.export === undefined ? {} : { export: options.export }),
    ...(options["force"] === true ? { force: true } : {}),
    ...(after.length === 0 ? {} : { after }),
  };
};

const FLAGS: Readonly<Record<string, string>> = {
  lines: "--each-line",
  json: "--from-json",
  array: "--array",
  matrix: "--each",
  colsep: "--colsep",
};

const flagOf = (path: Path): string => {
  const [key, name, inner] = path[0] === "tasks" ? path.slice(2) : path;
  if (key === undefined || key === "run") return "COMMAND";
  if (key === "resources") return `--resource ${name ?? ""}`.trim();
  if (key === "env") return `--env ${name ?? ""}`.trim();
  if (key !== "each") return `--${key}`;
  return `${FLAGS[name ?? ""] ?? "items"}${name === "matrix" && inner !== undefined ? ` ${inner}` : ""}`;
};

/** Problems of options name the flag. */
export const commandLine: Source = { locate: (path) => ({ where: "command line", key: flagOf(path) }) };

/** What a file with one task would hold, not checked yet. */
export const typedRun = (command: readonly string[], options: CommandOptions) => {
  const each = eachOf(options);
  const task = { run: [...command], ...(each === undefined ? {} : { each }), ...taskPart(options) };
  const defaultName = nameFrom(basename(command[0] ?? ""), "run");
  return { value: { ...runPart(options), tasks: [task] }, source: commandLine, defaultName };
};

/** The document of `slipway run [options] -- COMMAND…` where that is plain; else run-from-command.ts makes it. */
export const plainFromCommand = (command: readonly string[], options: CommandOptions): RunDocument | undefined => {
  const { value, source, defaultName } = typedRun(command, options);
  const plain = plainRun(value);
  return plain === undefined ? undefined : { value: plain, source, defaultName };
};
