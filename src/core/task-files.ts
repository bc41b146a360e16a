import { itemIn, itemsOf } from "./item-source.ts";
import { type Group, type Run, indexOfRow } from "./run.ts";
import { compileTrusted, expand, type Template, type TemplateContext } from "./template.ts";
import type { Row } from "./ids.ts";

/** The files that a task reads and writes, as its run's file declares them: `inputs` and `outputs`. They are never moved. */

/** When a task with outputs need not run; `never`: it always runs. */
export const SKIP_MODES = ["newer", "present", "content", "never"] as const;

export type SkipMode = (typeof SKIP_MODES)[number];

/** Absolute paths, in the order in which they were written. */
export interface TaskFiles {
  readonly outputs: readonly string[];
  readonly inputs: readonly string[];
}

/** A group, or the template of one. */
interface Declared {
  readonly name: string;
  readonly cwd?: string | undefined;
  readonly outputs?: readonly string[] | undefined;
  readonly inputs?: readonly string[] | undefined;
}

interface CompiledFiles {
  readonly cwd: Template | undefined;
  readonly outputs: readonly Template[];
  readonly inputs: readonly Template[];
}

const compiled = new WeakMap<Declared, CompiledFiles>();

const compileFiles = (spec: Declared): CompiledFiles => {
  let known = compiled.get(spec);
  if (known === undefined) {
    const { cwd, outputs = [], inputs = [] } = spec;
    known = {
      cwd: cwd === undefined ? undefined : compileTrusted(cwd),
      outputs: outputs.map((text) => compileTrusted(text)),
      inputs: inputs.map((text) => compileTrusted(text)),
    };
    compiled.set(spec, known);
  }
  return known;
};

/** Whether a path has parts that say nothing: `//`, `/.`, `/..`, or a slash at its end. */
const ODD = /\/\.{0,2}(?:\/|$)/;

/** A path without detours, so that one file has one name; links are not looked at. */
export const absolute = (from: string, to: string): string => {
  const path = to.startsWith("/") ? to : `${from}/${to}`;
  if (!ODD.test(path)) return path;
  const parts: string[] = [];
  for (const part of path.split("/"))
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  return `/${parts.join("/")}`;
};

/** The files of one task, relative paths from its own directory. Items were checked: only another version's can throw. */
export const expandFiles = (spec: Declared, facts: Omit<TemplateContext, "name" | "attempt">): TaskFiles => {
  const { cwd, outputs, inputs } = compileFiles(spec);
  const first: TemplateContext = { ...facts, name: spec.name, attempt: 1 };
  const own = cwd === undefined ? facts.cwd : absolute(facts.cwd, expand(cwd, first));
  const context = cwd === undefined ? first : { ...first, cwd: own };
  const path = (template: Template): string => absolute(own, expand(template, context));
  return { outputs: outputs.map(path), inputs: inputs.map(path) };
};

export const filesOf = (run: Run, { spec, items, first }: Group, row: Row): TaskFiles =>
  expandFiles(spec, {
    run: run.id,
    task: indexOfRow(run, row),
    item: itemIn(itemsOf(spec, items), row - first),
    cwd: run.spec.cwd,
  });
