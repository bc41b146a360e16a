import { type Amount, compileFormula, isFormula } from "../core/amounts.ts";
import { canonicalResource, parseResource, resourceNameProblem } from "../core/quantities.ts";
import { FRACTION, type Resources } from "../core/resources.ts";
import type { DefaultsInput } from "./run-schema.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";
import { checkTemplate, checkText, refuseItem, type ItemKind } from "./text-rules.ts";

const BUILT_IN = ["cpus", "gpus", "mem", "tmp"] as const;
/** With ranks, all amounts are per rank; these names say so. */
const PER_RANK = [
  ["cpus-per-rank", "cpus"],
  ["gpus-per-rank", "gpus"],
] as const;

/** What was written, with the place of each amount: the task's own before the run's defaults. */
export type Written = ReadonlyMap<string, { readonly value: string | number; readonly path: Path }>;

export interface TaskResources {
  readonly resources: Resources;
  readonly itemResources?: Readonly<Record<string, string>>;
  readonly attemptResources?: Readonly<Record<string, string>>;
  /** Memory is learned: the server says what the first tasks get. */
  readonly autoMem?: boolean;
}

/** Collects amounts from an entry; later calls replace what earlier ones wrote. */
export const collectAmounts = (
  source: Source,
  entry: DefaultsInput,
  path: Path,
  into: Map<string, { value: string | number; path: Path }>,
): void => {
  for (const name of BUILT_IN) {
    const value = entry[name];
    if (value !== undefined) into.set(name, { value, path: [...path, name] });
  }
  for (const [key, name] of PER_RANK) {
    const value = entry[key];
    if (value === undefined) continue;
    if (entry[name] !== undefined) badValue(source, [...path, key], `contradicts ${name}`, "Keep one of them.");
    into.set(name, { value, path: [...path, key] });
  }
  for (const [name, value] of Object.entries(entry.resources ?? {})) {
    const at = [...path, "resources", name];
    const problem = resourceNameProblem(name);
    if (problem !== undefined) badValue(source, at, problem);
    const canonical = canonicalResource(name);
    if ((BUILT_IN as readonly string[]).includes(canonical)) {
      badValue(source, at, `${canonical} is a key of its own`, `Write ${canonical}: beside resources, not inside it.`);
    }
    into.set(name, { value, path: at });
  }
};

/** An amount that is learned: memory and time-request. */
export const AUTO = "auto";

/** Formulas with {attempt} are checked for every attempt of every item when the run comes in. */
const MOST_ATTEMPTS = 101;

/** Whether an amount is worked out for each item. A formula that cannot be read is refused later, with its place. */
export const dependsOnItem = (name: string, value: string | number): boolean => {
  if (typeof value !== "string") return false;
  if (!isFormula(value)) return value.includes("{");
  try {
    return compileFormula(name, value).usesItem;
  } catch {
    return false;
  }
};

/** A formula that this task can work out. */
const readFormula = (source: Source, path: Path, name: string, text: string, items: ItemKind): Amount => {
  checkText(source, path, text);
  const amount = parsed(source, path, () => compileFormula(name, text));
  refuseItem(source, path, items, amount.usesItem, amount.fields);
  return amount;
};

/** What it comes to in the first attempt, if that can be known without an item; all attempts are checked. */
const firstUnits = (source: Source, path: Path, amount: Amount, retries: number): number => {
  const last = amount.usesAttempt ? retries + 1 : 1;
  const units = Array.from({ length: last }, (_, i) =>
    parsed(source, path, () => {
      try {
        return amount.unitsFor({ item: undefined, attempt: i + 1 });
      } catch (error) {
        throw i === 0 ? error : new RangeError(`${(error as Error).message} (attempt ${i + 1})`, { cause: error });
      }
    }),
  );
  return units[0]!;
};

/**
 * Amounts in units. A task that does not say gets one cpu; amounts of zero are left out, but for cpus. What depends on
 * the attempt must have a value in each that `retries` allows. `take` reads one amount, and may keep what is wrong.
 */
export const readResources = (
  source: Source,
  written: Written,
  items: ItemKind,
  retries = 0,
  take: (read: () => void) => void = (read) => read(),
): TaskResources => {
  const resources: Record<string, number> = { cpus: FRACTION };
  const perItem: Record<string, string> = {};
  const perAttempt: Record<string, string> = {};
  const keep = (name: string, units: number): void => {
    if (units > 0 || name === "cpus") resources[name] = units;
  };
  const readOne = (name: string, value: string | number, path: Path): void => {
    delete resources[name];
    if (name === "mem" && value === AUTO) return;
    if (typeof value === "string" && isFormula(value)) {
      const amount = readFormula(source, path, name, value, items);
      if (amount.usesAttempt) {
        if (retries >= MOST_ATTEMPTS)
          badValue(source, path, `uses attempt, which goes with at most ${MOST_ATTEMPTS - 1} retries, not ${retries}`);
        perAttempt[name] = value;
      }
      if (amount.usesItem) perItem[name] = value;
      else keep(name, firstUnits(source, path, amount, retries));
      return;
    }
    if (typeof value === "string" && value.includes("{")) {
      const template = checkTemplate(source, path, value, items);
      for (const used of template.uses)
        if (used !== "item")
          badValue(source, path, `{${used}} cannot be used in an amount; only {item} and {attempt} can`);
      if (template.constant === undefined) {
        perItem[name] = value;
        return;
      }
    }
    keep(
      name,
      parsed(source, path, () => parseResource(name, value)),
    );
  };
  for (const [name, { value, path }] of written) take(() => readOne(name, value, path));
  return {
    resources,
    ...(Object.keys(perItem).length === 0 ? {} : { itemResources: perItem }),
    ...(Object.keys(perAttempt).length === 0 ? {} : { attemptResources: perAttempt }),
    ...(written.get("mem")?.value === AUTO ? { autoMem: true } : {}),
  };
};
