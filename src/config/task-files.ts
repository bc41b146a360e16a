import type { GroupSpec } from "../core/spec.ts";
import type { Problems } from "./problems.ts";
import { badValue, type Source } from "./source.ts";
import { type Entry, valueOf } from "./task-entry.ts";
import { checkTemplate, type ItemKind } from "./text-rules.ts";

/** `outputs`, `inputs` and `skip` of a task. */

const MOST_FILES = 1000;

const GLOB = /[*?]/;

const readPaths = (source: Source, entry: Entry, key: "outputs" | "inputs", items: ItemKind): string[] | undefined => {
  const written = entry.task[key];
  if (written === undefined) return undefined;
  const paths = [written].flat();
  if (paths.length > MOST_FILES)
    badValue(source, entry.path(key), `has ${paths.length} paths; at most ${MOST_FILES} are allowed`);
  for (const [i, text] of paths.entries()) {
    const path = Array.isArray(written) ? [...entry.path(key), i] : entry.path(key);
    if (text === "") badValue(source, path, "is empty", "Write a path.");
    if (GLOB.test(text))
      badValue(
        source,
        path,
        `${text.slice(0, 60)} is a pattern`,
        "Name each file; {item} and other placeholders may be used.",
      );
    const { uses } = checkTemplate(source, path, text, items);
    if (uses.has("attempt"))
      badValue(source, path, "{attempt} cannot be used here: files are looked at before there is an attempt");
  }
  return paths.length === 0 ? undefined : paths;
};

export const readFiles = (
  source: Source,
  entry: Entry,
  items: ItemKind,
  { take }: Problems,
): Pick<GroupSpec, "outputs" | "inputs" | "skip"> => {
  const [outputs, inputs] = (["outputs", "inputs"] as const).map((key) =>
    take(() => readPaths(source, entry, key, items)),
  );
  const skip = valueOf(entry, "skip");
  if (entry.task.outputs === undefined) {
    if (entry.task.skip !== undefined)
      take(() =>
        badValue(
          source,
          entry.path("skip"),
          "needs outputs: it is they that are looked at",
          "Add outputs, or remove this key.",
        ),
      );
    if (entry.task.inputs !== undefined)
      take(() =>
        badValue(
          source,
          entry.path("inputs"),
          "needs outputs: a task without any always runs",
          "Add outputs, or remove this key.",
        ),
      );
  }
  return {
    ...(outputs === undefined ? {} : { outputs, skip: skip ?? "newer" }),
    ...(inputs === undefined ? {} : { inputs }),
  };
};
