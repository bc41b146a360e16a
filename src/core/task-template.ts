import { type Item, itemOf } from "./item.ts";
import { argvOf, type Command } from "./spec.ts";
import { compileTrusted, expand, type Template, type TemplateContext } from "./template.ts";
import type { RunId } from "./ids.ts";

/**
 * What the tasks of a group have in common, and its expansion for one task: the only expansion, used by an agent to
 * start a task and by a server to show it.
 */
export interface TaskTemplate {
  readonly name: string;
  readonly command: Command;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  readonly stdout?: string | undefined;
  readonly stderr?: string | undefined;
}

/** Compiled once for all tasks of the group. */
export interface CompiledTask {
  readonly name: string;
  readonly argv: readonly Template[];
  readonly env: readonly (readonly [string, Template])[];
  readonly cwd: Template | undefined;
  readonly stdout: Template | undefined;
  readonly stderr: Template | undefined;
}

/** What differs between attempts. */
export interface TaskFacts {
  readonly run: RunId;
  /** The number people see. */
  readonly task: number;
  readonly attempt: number;
  readonly item: Item | undefined;
  /** The run's directory. */
  readonly cwd: string;
}

export interface ExpandedTask {
  readonly argv: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly stdout: string | null;
  readonly stderr: string | null;
}

export const compileTask = ({ name, command, env, cwd, stdout, stderr }: TaskTemplate): CompiledTask => {
  const shell = typeof command === "string";
  const optional = (text: string | undefined): Template | undefined =>
    text === undefined ? undefined : compileTrusted(text);
  return {
    name,
    argv: argvOf(command).map((word) => compileTrusted(word, { shell })),
    env: Object.entries(env ?? {}).map(([key, value]) => [key, compileTrusted(value)] as const),
    cwd: optional(cwd),
    stdout: optional(stdout),
    stderr: optional(stderr),
  };
};

/** `{item}` of the task at a position in its group: stored as text or JSON, or counted; undefined if there is none. */
export const itemAt = (
  place: number,
  stored: string | undefined,
  json: boolean,
  range: { readonly from: number; readonly step: number } | undefined,
  colsep?: string,
): Item | undefined => {
  if (stored !== undefined) return itemOf(stored, json, colsep);
  return range === undefined ? undefined : { text: String(range.from + place * range.step), json: false };
};

/** Resolves relative paths: node:path's `resolve`, which core does not import. */
export type Resolve = (from: string, to: string) => string;

/**
 * In the task's own directory `{cwd}` stands for the run's, everywhere else for the task's. Throws a RangeError where a
 * value cannot be placed, unless `fill` decides otherwise.
 */
export const expandTask = (
  task: CompiledTask,
  facts: TaskFacts,
  resolve: Resolve,
  fill: (template: Template, context: TemplateContext) => string = expand,
): ExpandedTask => {
  const first: TemplateContext = { ...facts, name: task.name };
  const cwd = task.cwd === undefined ? facts.cwd : resolve(facts.cwd, fill(task.cwd, first));
  const context: TemplateContext = task.cwd === undefined ? first : { ...first, cwd };
  const path = (template: Template | undefined): string | null =>
    template === undefined ? null : resolve(facts.cwd, fill(template, context));
  return {
    argv: task.argv.map((word) => fill(word, context)),
    env: task.env.map(([key, value]) => `${key}=${fill(value, context)}`),
    cwd,
    stdout: path(task.stdout),
    stderr: path(task.stderr),
  };
};
