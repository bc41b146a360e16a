import { resolve } from "node:path";
import type { GroupSpec } from "../core/spec.ts";
import { compileTrusted, type Placeholder } from "../core/template.ts";
import { badValue, type Path, type Source } from "./source.ts";
import type { Entry } from "./task-entry.ts";
import type { TaskItems } from "./task-items.ts";

/**
 * Two tasks that write to one file replace what the other wrote. Such runs are refused, judged on the templates: the
 * tasks of a group have files of their own if `{task}` or part of `{item}` is in the path (that the items of a
 * list differ is the user's own affair), groups if their templates differ. Whoever appends to the file may share it.
 */

/** One file, or one for each task, that a group writes to. */
export interface Output {
  readonly group: GroupSpec;
  readonly key: "stdout" | "stderr";
  /** Where it was written. */
  readonly path: Path;
  /** Equal templates give equal texts, however they are spelled; values filled in later appear as their names. */
  readonly text: string;
  readonly uses: ReadonlySet<Placeholder>;
  /** More than one task, or an unknown number. */
  readonly many: boolean;
}

/** No text that a user gives holds one: so a value that is not known yet cannot be mistaken for text. */
const NUL = "\0";
const KEEPS_NOTHING = "/dev/null";
/** Arrays with one template that are compared each with each. */
const MOST_COMPARED = 1000;

/** `directory`: what `{cwd}` is there. */
const textOf = (template: string, name: string, directory: () => string, uses: Set<Placeholder>): string =>
  compileTrusted(template)
    .parts.map((part) => {
      if (typeof part === "string") return part;
      if (part.name === "name") return name;
      if (part.name === "cwd") return directory();
      uses.add(part.name);
      return `${NUL}${[part.name, ...part.path].join(".")}${NUL}`;
    })
    .join("");

export const outputsOf = (group: GroupSpec, each: TaskItems, entry: Entry, cwd: string): Output[] =>
  (["stdout", "stderr"] as const).flatMap((key): Output[] => {
    const template = group[key];
    if (template === undefined) return [];
    const uses = new Set<Placeholder>();
    // `{cwd}` in the directory itself is the run's, elsewhere the task's: as the agent does it
    const own = (): string =>
      group.cwd === undefined
        ? cwd
        : resolve(
            cwd,
            textOf(group.cwd, group.name, () => cwd, uses),
          );
    const file = resolve(cwd, textOf(template, group.name, own, uses));
    if (file === KEEPS_NOTHING) return [];
    // ranks that agents start have files of their own, named after each
    const text = group.ranks?.by === "agents" ? `${file}.${NUL}rank${NUL}` : file;
    const { items } = group;
    const isRead = items.kind === "list" && each.input?.kind !== "values";
    const many = isRead || (items.kind !== "one" && items.count > 1);
    return [{ group, key, path: entry.path(key), text, uses, many }];
  });

/** Whether two arrays surely have a number in common. */
const overlap = ({ items: a }: GroupSpec, { items: b }: GroupSpec): boolean => {
  if (a.kind !== "range" || b.kind !== "range" || a.step !== b.step || (a.from - b.from) % a.step !== 0) return false;
  return a.from <= b.from + (b.count - 1) * b.step && b.from <= a.from + (a.count - 1) * a.step;
};

/** Whether tasks of two groups with the same template write to the same file. */
const clash = (a: Output, b: Output): boolean =>
  a.group !== b.group &&
  !(a.group.append === true && b.group.append === true) &&
  !a.uses.has("task") &&
  (!a.uses.has("item") || overlap(a.group, b.group));

export const refuseSharedOutputs = (source: Source, outputs: readonly Output[]): void => {
  const known = new Map<string, Output[]>();
  for (const output of outputs) {
    const { group, key, path, text, uses, many } = output;
    if (many && group.append !== true && !uses.has("task") && !uses.has("item"))
      badValue(
        source,
        path,
        `all tasks of '${group.name}' would write to ${group[key]}, each replacing what the others wrote`,
        "Put {task} or {item} into the path, or let them share the file with append: true (--append).",
      );
    const others = known.get(text) ?? [];
    const other = others.find((each) => clash(each, output));
    if (other !== undefined)
      badValue(
        source,
        path,
        `'${group.name}' would replace what '${other.group.name}' writes to ${group[key]} (its ${other.key})`,
        "Put {name} or {task} into the path, or let both share the file with append: true (--append).",
      );
    // without items in it, any two clash, or all of them append
    if (others.length < (uses.has("item") ? MOST_COMPARED : 1)) others.push(output);
    known.set(text, others);
  }
};
