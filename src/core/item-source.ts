import { type Item, fieldOf, itemOf } from "./item.ts";
import { matrixItem, sameAxes } from "./matrix.ts";
import type { PackedItems } from "./packed-items.ts";
import { type GroupSpec, type ItemSource, itemCount } from "./spec.ts";

/** The items of a group, one at a time: counted, made or stored. */
export interface WithItems {
  readonly source: ItemSource;
  readonly packed: PackedItems | undefined;
  readonly colsep?: string | undefined;
}

/** Those of a group, or of one that will be. */
export const itemsOf = (spec: Pick<GroupSpec, "items" | "colsep">, packed: PackedItems | undefined): WithItems => ({
  source: spec.items,
  packed,
  colsep: spec.colsep,
});

/** Whether items are kept, or made, as JSON texts. */
export const isJsonItems = ({ source, packed }: WithItems): boolean => packed?.json ?? source.kind === "matrix";

/** The item at a place as it is stored; undefined in a group without items. */
export const storedAt = ({ source, packed }: WithItems, place: number): string | undefined => {
  if (packed !== undefined) return packed.get(place);
  if (source.kind === "matrix") return matrixItem(source, place);
  return source.kind === "range" ? String(source.from + place * source.step) : undefined;
};

export const itemIn = (items: WithItems, place: number): Item | undefined => {
  const stored = storedAt(items, place);
  return stored === undefined ? undefined : itemOf(stored, isJsonItems(items), items.colsep);
};

export const countOfItems = ({ source, packed }: WithItems): number =>
  source.kind === "list" ? (packed?.length ?? 0) : itemCount(source);

/** Whether both hold the same items in the same order, and each once, as can be seen without looking at them. */
export const areAlike = ({ source: a }: WithItems, { source: b }: WithItems): boolean => {
  if (a.kind === "matrix") return b.kind === "matrix" && sameAxes(a, b);
  return a.kind === "range" && b.kind === "range" && a.from === b.from && a.step === b.step && a.count === b.count;
};

/** What two items must have in common: the text, or that of a field. */
export const textIn = (items: WithItems, place: number, path: readonly string[] | undefined): string => {
  const item = itemIn(items, place)!;
  return path === undefined ? item.text : fieldOf(item, path);
};
