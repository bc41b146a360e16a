import type { Condition, Dependency, ItemMatch } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import { quoted } from "../core/quantities.ts";
import { suggest } from "./nearest.ts";
import type { TaskInput } from "./run-schema.ts";
import { badValue, refuse, type Path, type Source } from "./source.ts";

const CONDITIONS: readonly string[] = ["ok", "any", "failed"] satisfies Condition[];
const MAX_RUN_ID = 2 ** 31 - 1;

interface Entry {
  readonly name: string;
  readonly on: Condition;
  /** Only for tasks of the same run: they wait item by item. */
  readonly items?: ItemMatch;
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A field of items, as placeholders name it: `sample`, `meta.sample`, `0`. */
const FIELD = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;

/** What stands behind the name of a task: ok, any, failed, same, or a map with `items` and `when`. */
const readCondition = (source: Source, path: Path, name: string, value: unknown): Entry => {
  const wrong = (detail: string, remedy?: string): never => badValue(source, path, detail, remedy);
  const words = [...CONDITIONS, "same"];
  if (value === "same") return { name, on: "ok", items: "same" };
  if (typeof value === "string" && CONDITIONS.includes(value)) return { name, on: value as Condition };
  if (!isMap(value)) {
    const near = typeof value === "string" ? suggest(value, words) : "";
    return wrong(`the condition on '${name}' must be ok, any, failed or same, not ${quoted(value)}${near}`);
  }
  const { items, when = "ok", ...others } = value;
  const [other] = Object.keys(others);
  if (other !== undefined)
    wrong(`'${name}' takes items and when, not ${quoted(other)}${suggest(other, ["items", "when"])}`);
  if (typeof when !== "string" || !CONDITIONS.includes(when))
    wrong(`when of '${name}' must be ok, any or failed, not ${quoted(when)}`);
  const on = when as Condition;
  if (items === undefined) return { name, on };
  if (items === "same") return { name, on, items };
  const by = isMap(items) && Object.keys(items).length === 1 ? items["by"] : undefined;
  if ((typeof by !== "string" && typeof by !== "number") || String(by).length > 1000 || !FIELD.test(String(by)))
    return wrong(
      `items of '${name}' must be same, or {by: KEY} with a field of its items, not ${quoted(by ?? items)}`,
      "Write {items: same} or {items: {by: sample}}.",
    );
  return { name, on, items: { by: String(by) } };
};

/** All forms of `after` as a list of names with conditions. */
const entriesOf = (source: Source, path: Path, after: TaskInput["after"]): Entry[] => {
  if (after === undefined) return [];
  const list = Array.isArray(after) ? after : [after];
  if (list.every((entry) => typeof entry === "string")) return list.map((name) => ({ name, on: "ok" }));
  return list.flatMap((entry) => {
    if (typeof entry !== "object") return [{ name: String(entry), on: "ok" }];
    return Object.entries(entry).map(([name, value]) => {
      const read = readCondition(source, path, name, value);
      if (read.items !== undefined && name.startsWith("run:")) refuseRunItems(source, path, name);
      return read;
    });
  });
};

const refuseRunItems = (source: Source, path: Path, name: string): never =>
  badValue(
    source,
    path,
    `'${name}' cannot be waited for item by item: items are matched inside one run only`,
    "Put both tasks into one file, or wait for the whole run with ok, any or failed.",
  );

const runId = (source: Source, path: Path, text: string): number => {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (id < 1 || id > MAX_RUN_ID) badValue(source, path, `${quoted(text)} is not a run id; write run:3`);
  return id;
};

/** Each dependency once; the same one with two conditions is a contradiction. */
const unique = (source: Source, path: Path, entries: readonly Entry[]): readonly Entry[] => {
  if (entries.length < 2) return entries;
  const seen = new Map<string, string>();
  return entries.filter(({ name, on, items }) => {
    const said = items === undefined ? on : JSON.stringify({ items, when: on });
    const before = seen.get(name);
    if (before !== undefined && before !== said)
      badValue(source, path, `'${name}' is named with both ${before} and ${said}`);
    seen.set(name, said);
    return before === undefined;
  });
};

/** The run's own `after`: ids of earlier runs, `3` or `run:3`. */
export const readRunAfter = (source: Source, path: Path, after: TaskInput["after"]): Dependency[] =>
  unique(
    source,
    path,
    entriesOf(source, path, after).map(({ name, on, items }) => {
      if (items !== undefined) refuseRunItems(source, path, name);
      return { name: name.replace(/^run:/, "").trim(), on };
    }),
  ).map(({ name, on }) => ({ run: runId(source, path, name), on }));

/** A task's `after`: names of tasks of the same run, or `run:3`. */
export const readTaskAfter = (
  source: Source,
  path: Path,
  after: TaskInput["after"],
  groups: ReadonlyMap<string, number>,
): Dependency[] =>
  unique(source, path, entriesOf(source, path, after)).map(({ name, on, items }) => {
    if (name.startsWith("run:")) return { run: runId(source, path, name.slice(4)), on };
    const group = groups.get(name);
    return group === undefined
      ? refuse("unknown-task", source, path, { name: name.slice(0, 200), suggestion: suggest(name, groups.keys()) })
      : { group, on, ...(items === undefined ? {} : { items }) };
  });

const groupsIn = (after: readonly Dependency[]): number[] =>
  after.flatMap((dependency) => ("group" in dependency ? [dependency.group] : []));

/** Tasks that can never start, because they wait for each other or for such. Linear in tasks and dependencies. */
const neverReady = (after: readonly (readonly Dependency[])[]): Set<number> => {
  const waiting = new Int32Array(after.length);
  /** Those that wait for task i lie in `followers` from `first[i]` to `first[i + 1]`. */
  const first = new Int32Array(after.length + 1);
  for (const [i, list] of after.entries())
    for (const dependency of list)
      if ("group" in dependency) {
        waiting[i]! += 1;
        first[dependency.group + 1]! += 1;
      }
  for (let i = 0; i < after.length; i += 1) first[i + 1]! += first[i]!;
  const followers = new Int32Array(first[after.length]!);
  const next = first.slice();
  for (const [i, list] of after.entries())
    for (const dependency of list) if ("group" in dependency) followers[next[dependency.group]!++] = i;
  const ready = new Int32Array(after.length);
  let found = 0;
  for (let i = 0; i < after.length; i += 1) if (waiting[i] === 0) ready[found++] = i;
  for (let at = 0; at < found; at += 1)
    for (let i = first[ready[at]!]!, end = first[ready[at]! + 1]!; i < end; i += 1)
      if ((waiting[followers[i]!]! -= 1) === 0) ready[found++] = followers[i]!;
  const left = new Set<number>();
  if (found < after.length) for (let i = 0; i < after.length; i += 1) if (waiting[i]! > 0) left.add(i);
  return left;
};

/** Follows what is left from one task that can never start; some task must come a second time. */
const pathThrough = (left: ReadonlySet<number>, after: readonly (readonly Dependency[])[]): number[] => {
  const order = new Map<number, number>();
  const path: number[] = [];
  let at: number = left.values().next().value!;
  while (!order.has(at)) {
    order.set(at, path.length);
    path.push(at);
    at = groupsIn(after[at]!).find((group) => left.has(group))!;
  }
  return [...path.slice(order.get(at)!), at];
};

const MOST_SHOWN = 12;

/** Refuses tasks that wait for each other, naming the cycle. */
export const refuseCycles = (
  source: Source,
  names: readonly string[],
  after: readonly (readonly Dependency[])[],
): void => {
  const left = neverReady(after);
  if (left.size === 0) return;
  const circle = pathThrough(left, after);
  const shownNames = circle.map((i) => names[i]!);
  if (shownNames.length > MOST_SHOWN) shownNames.splice(MOST_SHOWN - 2, shownNames.length - MOST_SHOWN, "…");
  const { where } = source.locate(["tasks", circle[0]!, "after"]);
  throw new SlipwayError("cycle", { where, path: shownNames.join(" → ") });
};
