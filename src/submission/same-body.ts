import { hash } from "node:crypto";
import type { PackedItems } from "../core/items.ts";

/** Whether a request says the same as an earlier one with its uuid. */

/** Digest of a submission's document, without uuid and without the items that follow it: 128 bits, as text. */
export const digestOf = (document: object): string => {
  const { uuid: _uuid, ...rest } = document as { readonly uuid?: unknown };
  return hash("sha256", JSON.stringify(rest), "base64url").slice(0, 22);
};

/** Compares the items of one request with those already known, group by group. */
export interface ItemComparison {
  /** Takes the next items; returns those that are new, and the position of the first of them. */
  next(group: number, values: readonly string[]): { readonly from: number; readonly fresh: readonly string[] };
  /** The request is at its end: it must have contained everything that is known. */
  end(groups: Iterable<number>): void;
}

export const compareItems = (
  known: (group: number) => PackedItems | undefined,
  differs: () => never,
): ItemComparison => {
  const counts = new Map<number, number>();
  return {
    next: (group, values) => {
      const from = counts.get(group) ?? 0;
      const items = known(group);
      const both = Math.min(values.length, (items?.length ?? 0) - from);
      for (let i = 0; i < both; i += 1) if (items!.get(from + i) !== values[i]) differs();
      counts.set(group, from + values.length);
      return { from: from + both, fresh: both === 0 ? values : values.slice(both) };
    },
    end: (groups) => {
      for (const group of groups) if ((counts.get(group) ?? 0) !== (known(group)?.length ?? 0)) differs();
    },
  };
};
