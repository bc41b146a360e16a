import { canonicalResource, parseResource, resourceNameProblem } from "../core/quantities.ts";
import { FRACTION, type Resources } from "../core/resources.ts";
import type { DefaultsInput } from "./run-schema.ts";
import { badValue, parsed, type Path, type Source } from "./source.ts";
import { checkTemplate, type ItemKind } from "./text-rules.ts";

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

/** Whether an amount is worked out for each item. */
export const dependsOnItem = (value: string | number): value is string =>
  typeof value === "string" && value.includes("{");

/** Amounts in units. A task that does not say gets one cpu; amounts of zero are left out, but for cpus. */
export const readResources = (source: Source, written: Written, items: ItemKind): TaskResources => {
  const resources: Record<string, number> = { cpus: FRACTION };
  const perItem: Record<string, string> = {};
  for (const [name, { value, path }] of written) {
    delete resources[name];
    if (dependsOnItem(value)) {
      const template = checkTemplate(source, path, value, items);
      for (const used of template.uses) {
        if (used !== "item") badValue(source, path, `{${used}} cannot be used in an amount; only {item} can`);
      }
      if (template.constant === undefined) {
        perItem[name] = value;
        continue;
      }
    }
    const units = parsed(source, path, () => parseResource(name, value));
    if (units > 0 || name === "cpus") resources[name] = units;
  }
  return Object.keys(perItem).length === 0 ? { resources } : { resources, itemResources: perItem };
};
