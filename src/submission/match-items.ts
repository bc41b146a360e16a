import { setImmediate as nextTurn } from "node:timers/promises";
import { itemsOf } from "../core/item-source.ts";
import { type Paired, pair } from "../core/pairing.ts";
import type { Draft } from "../core/state.ts";
import { SlipwayError } from "../errors.ts";

/** How long items are matched without a pause. */
const TURN_MS = 10;

/**
 * Matches the groups of a draft that wait for each other item by item, with turns of the event loop in between, and keeps what it
 * found for the commit. Throws an error that names the first item without its counterpart.
 */
export const matchItems = async ({ opened, items, pairings }: Draft): Promise<void> => {
  const { groups } = opened.spec;
  const paired = (index: number): Paired => {
    const group = groups[index]!;
    return { name: group.name, ...itemsOf(group, items.get(index)) };
  };
  let since = performance.now();
  for (const [index, { name, after }] of groups.entries())
    for (const dependency of after) {
      if (!("group" in dependency) || dependency.items === undefined) continue;
      try {
        const pieces = pair(paired(dependency.group), paired(index), dependency.items);
        for (;;) {
          const next = pieces.next();
          if (next.done === true) {
            pairings.set(dependency, next.value);
            break;
          }
          if (performance.now() - since <= TURN_MS) continue;
          await nextTurn();
          since = performance.now();
        }
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        const { by } = dependency.items === "same" ? {} : dependency.items;
        throw new SlipwayError(
          "bad-value",
          {
            where: `tasks.${name}`,
            key: "after",
            detail: error.message,
            remedy:
              by === undefined
                ? "With `same` both tasks must have the same items, each once."
                : `With {by: ${by}} there must be a task to wait for with each ${by}.`,
          },
          error,
        );
      }
    }
};
