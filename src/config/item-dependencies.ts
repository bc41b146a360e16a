import { countOfItems, itemsOf } from "../core/item-source.ts";
import { PackedItems } from "../core/packed-items.ts";
import { type Paired, atOnce, pair } from "../core/pairing.ts";
import type { Dependency, GroupSpec } from "../core/spec.ts";
import { badValue, parsed, type Source } from "./source.ts";
import type { ItemsInput } from "./task-items.ts";

/** Larger groups are matched where all items arrive, by the server: here it would only be done twice. */
const MOST_HERE = 10_000;

/** The items of a group as far as they are known here; undefined while they are still to be read. */
const knownItems = (group: GroupSpec, input: ItemsInput | undefined): Paired | undefined => {
  const { name } = group;
  if (input === undefined) return { name, ...itemsOf(group, undefined) };
  if (input.kind !== "values" || input.count > MOST_HERE) return undefined;
  const packed = new PackedItems(input.json);
  for (const text of input.values) packed.add(text);
  return { name, ...itemsOf(group, packed) };
};

const checkOne = (
  source: Source,
  groups: readonly GroupSpec[],
  inputs: ReadonlyMap<number, ItemsInput>,
  index: number,
  dependency: Extract<Dependency, { readonly group: number }>,
): void => {
  const path = ["tasks", index, "after"];
  const [before, after] = [groups[dependency.group]!, groups[index]!];
  for (const { name, items } of [before, after])
    if (items.kind === "one")
      badValue(
        source,
        path,
        `'${name}' has no items: the tasks of '${after.name}' cannot wait for those of '${before.name}' one by one`,
        `Give it \`each\`, or write {${before.name}: ok}.`,
      );
  const [one, other] = [knownItems(before, inputs.get(dependency.group)), knownItems(after, inputs.get(index))];
  if (one === undefined || other === undefined || countOfItems(one) > MOST_HERE || countOfItems(other) > MOST_HERE)
    return;
  parsed(source, path, () => atOnce(pair(one, other, dependency.items!)));
};

/** Checks dependencies by item, as far as items are known before they are read. */
export const checkItemDependencies = (
  source: Source,
  groups: readonly GroupSpec[],
  inputs: ReadonlyMap<number, ItemsInput>,
): void => {
  for (const [index, { after }] of groups.entries())
    for (const dependency of after)
      if ("group" in dependency && dependency.items !== undefined) checkOne(source, groups, inputs, index, dependency);
};
