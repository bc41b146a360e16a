import type { Condition, Dependency } from "../core/spec.ts";
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
}

/** All forms of `after` as a list of names with conditions. */
const entriesOf = (source: Source, path: Path, after: TaskInput["after"]): Entry[] => {
  if (after === undefined) return [];
  const list = Array.isArray(after) ? after : [after];
  if (list.every((entry) => typeof entry === "string")) return list.map((name) => ({ name, on: "ok" }));
  return list.flatMap((entry) => {
    if (typeof entry !== "object") return [{ name: String(entry), on: "ok" }];
    return Object.entries(entry).map(([name, on]) => {
      if (typeof on === "string" && CONDITIONS.includes(on)) return { name, on: on as Condition };
      const near = typeof on === "string" ? suggest(on, CONDITIONS) : "";
      return badValue(source, path, `the condition on '${name}' must be ok, any or failed, not ${quoted(on)}${near}`);
    });
  });
};

const runId = (source: Source, path: Path, text: string): number => {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (id < 1 || id > MAX_RUN_ID) badValue(source, path, `${quoted(text)} is not a run id; write run:3`);
  return id;
};

/** Each dependency once; the same one with two conditions is a contradiction. */
const unique = (source: Source, path: Path, entries: readonly Entry[]): readonly Entry[] => {
  if (entries.length < 2) return entries;
  const seen = new Map<string, Condition>();
  return entries.filter(({ name, on }) => {
    const before = seen.get(name);
    if (before !== undefined && before !== on)
      badValue(source, path, `'${name}' is named with both ${before} and ${on}`);
    seen.set(name, on);
    return before === undefined;
  });
};

/** The run's own `after`: ids of earlier runs, `3` or `run:3`. */
export const readRunAfter = (source: Source, path: Path, after: TaskInput["after"]): Dependency[] =>
  unique(
    source,
    path,
    entriesOf(source, path, after).map(({ name, on }) => ({ name: name.replace(/^run:/, "").trim(), on })),
  ).map(({ name, on }) => ({ run: runId(source, path, name), on }));

/** A task's `after`: names of tasks of the same run, or `run:3`. */
export const readTaskAfter = (
  source: Source,
  path: Path,
  after: TaskInput["after"],
  groups: ReadonlyMap<string, number>,
): Dependency[] =>
  unique(source, path, entriesOf(source, path, after)).map(({ name, on }) => {
    if (name.startsWith("run:")) return { run: runId(source, path, name.slice(4)), on };
    const group = groups.get(name);
    return group === undefined
      ? refuse("unknown-task", source, path, { name: name.slice(0, 200), suggestion: suggest(name, groups.keys()) })
      : { group, on };
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
