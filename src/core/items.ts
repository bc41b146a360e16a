import { type Amount, compileAmount } from "./amounts.ts";
import { type Item, fieldOf, itemOf, itemProblem } from "./item.ts";
import { PackedItems } from "./packed-items.ts";
import { quoted } from "./quantities.ts";
import type { Resources } from "./resources.ts";
import type { GroupSpec } from "./spec.ts";
import { compileTrusted, expand, type Template, type TemplateContext } from "./template.ts";

export { itemProblem, MAX_ITEM_BYTES, storedJson } from "./item.ts";
export { PackedItems } from "./packed-items.ts";

/** The items of a group: what `{item}` is in each of its tasks. */

export interface Range {
  readonly from: number;
  readonly step: number;
  readonly count: number;
}

/** One range, or several that follow each other. Nothing is allocated for its elements. */
export interface ParsedArray {
  readonly count: number;
  readonly ranges: readonly Range[];
}

const RANGE = /^(\d{1,16})(?:-(\d{1,16})(?::(\d{1,16}))?)?$/;
const FORMS = "write 1-100, 1-100:2 (every second), 7, or a list such as 1-3,7";

const parseRange = (text: string): Range => {
  const [matched, first, last = first, every = "1"] = RANGE.exec(text.trim()) ?? [];
  if (matched === undefined) throw new RangeError(`${quoted(text)} is not a valid array; ${FORMS}`);
  const [from, to, step] = [Number(first), Number(last), Number(every)];
  if (!Number.isSafeInteger(to) || !Number.isSafeInteger(from)) throw new RangeError(`${quoted(text)} is too large`);
  if (step < 1) throw new RangeError(`${quoted(text)}: the step must be at least 1`);
  if (to < from) throw new RangeError(`${quoted(text)} goes backwards; write the smaller number first`);
  return { from, step, count: Math.floor((to - from) / step) + 1 };
};

/** `1-100`, `1-100:2`, `5`, `1-3,7`. Any count is accepted, however large: the caller refuses before allocating. */
export const parseArray = (text: string | number): ParsedArray => {
  const parts = String(text).split(",", 100_001);
  if (parts.length > 100_000) throw new RangeError("an array list has at most 100,000 parts; use a file of lines");
  const ranges = parts.map(parseRange);
  return { count: ranges.reduce((sum, range) => sum + range.count, 0), ranges };
};

/** The elements in order, one at a time. */
export function* arrayValues(parsed: ParsedArray): Generator<string> {
  for (const { from, step, count } of parsed.ranges) for (let i = 0; i < count; i++) yield String(from + i * step);
}

/** What is compiled once per group for its items. */
interface ItemRules {
  /** Resource name → amount, for the amounts that depend on the item. */
  readonly amounts: Amounts;
  /** The same for those that depend on the attempt; some are in both. */
  readonly attempts: Amounts;
  /** `{item.key}` paths anywhere in the group. */
  readonly fields: readonly (readonly string[])[];
  /** The string command, if a value may have to be refused for its place in it. */
  readonly shell: Template | undefined;
  /** Results by their amounts: rows that ask for the same share one object. */
  readonly seen: Map<string, Resources>;
  /** Results from checking an item, kept until the item is taken in. */
  readonly checked: Map<string, Resources>;
}

type Amounts = readonly (readonly [string, Amount])[];

const rulesByGroup = new WeakMap<GroupSpec, ItemRules>();
const MOST_SHARED = 10_000;
/** Items are checked and taken in a few thousand at a time; what a refused submission leaves goes with the next. */
const MOST_CHECKED = 20_000;

const templatesOf = (group: GroupSpec): Template[] => {
  const { command, env = {}, cwd, stdout, stderr, outputs = [], inputs = [] } = group;
  const files = [cwd, stdout, stderr, ...outputs, ...inputs];
  const plain = [...(typeof command === "string" ? [] : command), ...Object.values(env), ...files];
  const templates = plain.filter((text) => text !== undefined).map((text) => compileTrusted(text));
  return typeof command === "string" ? [compileTrusted(command, { shell: true }), ...templates] : templates;
};

const rulesOf = (group: GroupSpec): ItemRules => {
  const known = rulesByGroup.get(group);
  if (known !== undefined) return known;
  const compiled = (texts: Readonly<Record<string, string>> = {}): Amounts =>
    Object.entries(texts).map(([name, text]) => [name, compileAmount(name, text)] as const);
  const amounts = compiled(group.itemResources);
  const attempts = compiled(group.attemptResources);
  const templates = templatesOf(group);
  const fields = new Map<string, readonly string[]>();
  for (const each of [...templates, ...amounts.map(([, amount]) => amount)]) {
    for (const path of each.fields) fields.set(path.join("."), path);
  }
  const shell = typeof group.command === "string" && templates[0]!.uses.has("item") ? templates[0] : undefined;
  const rules: ItemRules = {
    amounts,
    attempts,
    fields: [...fields.values()],
    shell,
    seen: new Map(),
    checked: new Map(),
  };
  rulesByGroup.set(group, rules);
  return rules;
};

const contextFor = ({ colsep }: GroupSpec, stored: string, json: boolean): TemplateContext => ({
  run: "",
  task: "",
  name: "",
  attempt: "",
  cwd: "",
  item: itemOf(stored, json, colsep),
});

/** The units of these amounts, in their order; an error names the resource and the attempt. */
const unitsOf = (amounts: Amounts, item: Item | undefined, attempt: number): number[] =>
  amounts.map(([name, amount]) => {
    try {
      return amount.unitsFor({ item, attempt });
    } catch (error) {
      const when = attempt > 1 ? ` (attempt ${attempt})` : "";
      throw new RangeError(`${name}: ${(error as Error).message}${when}`, { cause: error });
    }
  });

/**
 * `base` with these amounts in place of its own; an amount of zero is left out, but for cpus. Made name by name: a copy of
 * `base` would keep what is added outside the object, and there may be a million of them.
 */
const withUnits = (base: Resources, amounts: Amounts, units: readonly number[]): Resources => {
  const resources: Record<string, number> = {};
  const set = (name: string, at: number): void => {
    if (units[at]! > 0 || name === "cpus") resources[name] = units[at]!;
  };
  for (const name in base) {
    const at = amounts.findIndex(([own]) => own === name);
    if (at < 0) resources[name] = base[name]!;
    else set(name, at);
  }
  for (let at = 0; at < amounts.length; at += 1) if (!(amounts[at]![0] in resources)) set(amounts[at]![0], at);
  return resources;
};

/** What the first attempt asks for. */
const amountsFor = (group: GroupSpec, rules: ItemRules, item: Item): Resources => {
  const units = unitsOf(rules.amounts, item, 1);
  const key = units.join(" ");
  const shared = rules.seen.get(key);
  if (shared !== undefined) return shared;
  const resources = withUnits(group.resources, rules.amounts, units);
  if (rules.seen.size < MOST_SHARED) rules.seen.set(key, resources);
  return resources;
};

const naming = <T>(index: number, stored: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RangeError(`item ${index} (${quoted(stored)}): ${error.message}`, { cause: error });
  }
};

/**
 * What the first attempt of one task of a group asks for, in units, with the amounts that depend on its item. Never
 * fails: items were checked at submit, and one that this version would refuse asks for what its group asks for.
 */
export const evaluateItemResources = (group: GroupSpec, items: PackedItems, index: number): Resources => {
  try {
    const rules = rulesOf(group);
    if (rules.amounts.length === 0) return group.resources;
    const stored = items.get(index);
    const checked = rules.checked.get(stored);
    if (checked === undefined) return amountsFor(group, rules, itemOf(stored, items.json, group.colsep));
    rules.checked.delete(stored);
    return checked;
  } catch {
    return group.resources;
  }
};

/**
 * What a later attempt asks for, if its first asked for `first`. In amounts `attempt` counts failures, as `retries`
 * does: an attempt that was lost is repeated with the same amount. Throws a RangeError only if it was not checked.
 */
export const resourcesAt = (
  group: GroupSpec,
  first: Resources,
  stored: string | undefined,
  json: boolean,
  attempt: number,
): Resources => {
  const { attempts } = rulesOf(group);
  if (attempts.length === 0 || attempt === 1) return first;
  const item = stored === undefined ? undefined : itemOf(stored, json, group.colsep);
  return withUnits(first, attempts, unitsOf(attempts, item, attempt));
};

/** What each attempt asks for, from the first to the last that `retries` allows; only one if all are the same. */
export const resourcesByAttempt = (
  group: GroupSpec,
  first: Resources,
  stored: string | undefined,
  json: boolean,
): Resources[] => {
  const later = group.attemptResources === undefined ? 0 : group.retries;
  return [first, ...Array.from({ length: later }, (_, i) => resourcesAt(group, first, stored, json, i + 2))];
};

/**
 * Checks one item on its way in: that it is sound text, has every field the group names, and that its amounts are in
 * bounds. Throws a RangeError that names the item; after it, nothing of this item can fail in the engine. Returns what
 * its attempts ask for.
 */
export const checkItem = (group: GroupSpec, stored: string, json: boolean, index: number): readonly Resources[] =>
  naming(index, stored, () => {
    const problem = itemProblem(stored, json);
    if (problem !== undefined) throw new RangeError(problem);
    const rules = rulesOf(group);
    if (rules.fields.length === 0 && rules.amounts.length === 0 && rules.shell === undefined) return [group.resources];
    const context = contextFor(group, stored, json);
    for (const path of rules.fields) fieldOf(context.item!, path);
    if (rules.shell !== undefined) expand(rules.shell, context);
    if (rules.amounts.length === 0) return [group.resources];
    const resources = amountsFor(group, rules, context.item!);
    const all = resourcesByAttempt(group, resources, stored, json);
    if (rules.checked.size >= MOST_CHECKED) rules.checked.clear();
    rules.checked.set(stored, resources);
    return all;
  });
