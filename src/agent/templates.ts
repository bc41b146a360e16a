import {
  type CompiledTask,
  compileTask,
  expandTask as expandTemplate,
  type ExpandedTask as ExpandedTemplate,
  itemAt,
} from "../core/task-template.ts";
import type { Define, GroupTemplate } from "../protocol/messages.ts";
import { resolve } from "node:path";
import type { Row } from "../core/ids.ts";

/** Templates of runs, compiled once; they make each task's command. */

interface CompiledGroup extends CompiledTask {
  readonly source: GroupTemplate;
  /** What all its tasks expand to, if it is the same for all. */
  readonly constant: ExpandedTemplate | undefined;
}

export interface RunTemplate {
  readonly id: number;
  readonly name: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly numbering: { readonly start: number; readonly step: number };
  readonly groups: Map<number, CompiledGroup>;
}

export interface ExpandedTask extends ExpandedTemplate {
  readonly item: string | null;
}

const constantOf = (task: CompiledTask, { id, cwd }: RunTemplate): ExpandedTemplate | undefined => {
  const templates = [...task.argv, ...task.env.map(([, value]) => value), task.cwd, task.stdout, task.stderr];
  if (templates.some((template) => template !== undefined && template.constant === undefined)) return undefined;
  return expandTemplate(task, { run: id, task: 0, attempt: 0, item: undefined, cwd }, resolve);
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
  for (const group of message.groups) {
    const compiled = compileTask(group);
    template.groups.set(group.index, { source: group, ...compiled, constant: constantOf(compiled, template) });
  }
  return template;
};

export const indexOf = (run: RunTemplate, row: Row): number => run.numbering.start + row * run.numbering.step;

/**
 * Everything that the spawner needs to know of one attempt except its slot. Throws a RangeError if a value cannot be
 * placed.
 */
export const expandTask = (
  run: RunTemplate,
  group: CompiledGroup,
  row: Row,
  attempt: number,
  stored: string | undefined,
): ExpandedTask => {
  const { first, json, range, colsep } = group.source;
  const item = itemAt(row - first, stored, json, range, colsep);
  const { constant } = group;
  if (constant !== undefined) {
    const { argv, env, cwd, stdout, stderr } = constant;
    return { argv, env, cwd, stdout, stderr, item: item?.text ?? null };
  }
  const facts = { run: run.id, task: indexOf(run, row), attempt, item, cwd: run.cwd };
  return { ...expandTemplate(group, facts, resolve), item: item?.text ?? null };
};
