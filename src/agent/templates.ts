import {
  type CompiledTask,
  compileTask,
  expandTask as expandTemplate,
  type ExpandedTask as ExpandedTemplate,
  itemAt,
} from "../core/task-template.ts";
import { shapeKey } from "../core/resources.ts";
import type { Command } from "../core/spec.ts";
import type { AlikeGroups, Define, GroupTemplate } from "../protocol/messages.ts";
import { resolve } from "node:path";
import type { Row } from "../core/ids.ts";

/** Templates of runs, compiled when their first task begins; they make each task's command. */

interface CompiledGroup {
  readonly task: CompiledTask;
  /** What all its tasks expand to, if it is the same for all. */
  readonly constant: ExpandedTemplate | undefined;
}

interface KnownGroup {
  readonly source: GroupTemplate;
  /** The name of its tasks' shape, once asked for. */
  shape: string | undefined;
  compiled: CompiledGroup | undefined;
}

export interface RunTemplate {
  readonly id: number;
  readonly name: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly numbering: { readonly start: number; readonly step: number };
  readonly groups: Map<number, KnownGroup>;
}

export interface ExpandedTask extends ExpandedTemplate {
  readonly item: string | null;
}

const constantOf = (task: CompiledTask, { id, cwd }: RunTemplate): ExpandedTemplate | undefined => {
  const templates = [...task.argv, ...task.env.map(([, value]) => value), task.cwd, task.stdout, task.stderr];
  if (templates.some((template) => template !== undefined && template.constant === undefined)) return undefined;
  return expandTemplate(task, { run: id, task: 0, attempt: 0, item: undefined, cwd }, resolve);
};

/** Field by field: copying all that there is costs a multiple, and there may be 100,000 of them. */
const oneOf = (
  like: AlikeGroups["like"],
  index: number,
  first: number,
  name: string,
  command: Command,
): { readonly [K in keyof Required<GroupTemplate>]: GroupTemplate[K] } => {
  const { env, cwd, stdout, stderr, append, timeLimit, outputs, executor, pin } = like;
  const { priority, resources, range, json, colsep, patient } = like;
  return {
    index,
    name,
    first,
    command,
    env,
    cwd,
    stdout,
    stderr,
    append,
    timeLimit,
    outputs,
    executor,
    pin,
    priority,
    resources,
    range,
    json,
    colsep,
    patient,
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
  for (const source of message.groups)
    template.groups.set(source.index, { source, shape: undefined, compiled: undefined });
  for (const { like, index, first, name, command } of message.alike ?? []) {
    const shape = shapeKey(like.resources);
    for (let i = 0; i < index.length; i += 1) {
      const source = oneOf(like, index[i]!, first[i]!, name[i]!, command[i]!);
      template.groups.set(index[i]!, { source, shape, compiled: undefined });
    }
  }
  return template;
};

/** Tasks of groups with the same one ask for the same. */
export const shapeOf = (group: KnownGroup): string => (group.shape ??= shapeKey(group.source.resources));

const compiledOf = (group: KnownGroup, run: RunTemplate): CompiledGroup => {
  if (group.compiled !== undefined) return group.compiled;
  const task = compileTask(group.source);
  return (group.compiled = { task, constant: constantOf(task, run) });
};

export const indexOf = (run: RunTemplate, row: Row): number => run.numbering.start + row * run.numbering.step;

/**
 * Everything that the spawner needs to know of one attempt except its slot. Throws a RangeError if a value cannot be
 * placed.
 */
export const expandTask = (
  run: RunTemplate,
  group: KnownGroup,
  row: Row,
  attempt: number,
  stored: string | undefined,
): ExpandedTask => {
  const { first, json, range, colsep } = group.source;
  const item = itemAt(row - first, stored, json, range, colsep);
  const { task, constant } = compiledOf(group, run);
  if (constant !== undefined) {
    const { argv, env, cwd, stdout, stderr } = constant;
    return { argv, env, cwd, stdout, stderr, item: item?.text ?? null };
  }
  const facts = { run: run.id, task: indexOf(run, row), attempt, item, cwd: run.cwd };
  return { ...expandTemplate(task, facts, resolve), item: item?.text ?? null };
};
