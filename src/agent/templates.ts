import { type Item, itemOf } from "../core/items.ts";
import { type Template, type TemplateContext, compileTrusted, expand } from "../core/template.ts";
import type { Define, GroupTemplate } from "../protocol/messages.ts";
import { join, resolve } from "node:path";

/** Templates of runs, compiled once, from which each task's command is made. */

interface CompiledGroup {
  readonly source: GroupTemplate;
  readonly argv: readonly Template[];
  readonly shell: boolean;
  readonly env: readonly (readonly [string, Template])[];
  readonly cwd: Template | undefined;
  readonly stdout: Template | undefined;
  readonly stderr: Template | undefined;
}

export interface RunTemplate {
  readonly id: number;
  readonly name: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly numbering: { readonly start: number; readonly step: number };
  readonly groups: Map<number, CompiledGroup>;
}

export interface ExpandedTask {
  readonly argv: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly stdout: string | null;
  readonly stderr: string | null;
  readonly item: string | null;
}

const compileGroup = (source: GroupTemplate): CompiledGroup => {
  const shell = typeof source.command === "string";
  const optional = (text: string | undefined): Template | undefined =>
    text === undefined ? undefined : compileTrusted(text);
  return {
    source,
    shell,
    argv:
      typeof source.command === "string"
        ? [compileTrusted(source.command, { shell: true })]
        : source.command.map((word) => compileTrusted(word)),
    env: Object.entries(source.env).map(([name, value]) => [name, compileTrusted(value)] as const),
    cwd: optional(source.cwd),
    stdout: optional(source.stdout),
    stderr: optional(source.stderr),
  };
};

/** Adds what a message defines to what is known of the run. */
export const defineRun = (known: RunTemplate | undefined, message: Define): RunTemplate => {
  const template: RunTemplate = known ?? {
    id: message.run,
    name: message.runName,
    cwd: message.cwd,
    env: message.env ?? {},
    numbering: message.numbering,
    groups: new Map(),
  };
  for (const group of message.groups) template.groups.set(group.index, compileGroup(group));
  return template;
};

export const indexOf = (run: RunTemplate, row: number): number => run.numbering.start + row * run.numbering.step;

const itemFor = (group: GroupTemplate, row: number, stored: string | undefined): Item | undefined => {
  if (stored !== undefined) return itemOf(stored, group.json);
  return group.range === undefined
    ? undefined
    : { text: String(group.range.from + (row - group.first) * group.range.step), json: false };
};

/** Everything that the spawner needs to know of one attempt but its slot. Throws a RangeError if a value cannot be placed. */
export const expandTask = (
  run: RunTemplate,
  group: CompiledGroup,
  row: number,
  attempt: number,
  stored: string | undefined,
): ExpandedTask => {
  const item = itemFor(group.source, row, stored);
  const first = { run: run.id, task: indexOf(run, row), name: group.source.name, attempt, item, cwd: run.cwd };
  const cwd = group.cwd === undefined ? run.cwd : resolve(run.cwd, expand(group.cwd, first));
  const context: TemplateContext = group.cwd === undefined ? first : { ...first, cwd };
  const words = group.argv.map((word) => expand(word, context));
  const path = (template: Template | undefined): string | null =>
    template === undefined ? null : join(resolve(run.cwd, expand(template, context)));
  return {
    argv: group.shell ? ["/bin/sh", "-c", words[0]!] : words,
    env: group.env.map(([name, value]) => `${name}=${expand(value, context)}`),
    cwd,
    stdout: path(group.stdout),
    stderr: path(group.stderr),
    item: item?.text ?? null,
  };
};
