import { setImmediate as nextTurn } from "node:timers/promises";
import type { ItemsInput } from "../config/task-items.ts";
import { storedJson } from "../core/items.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";

/** The items of a submission: those given with the document, and those of its stream. */

/** How many items share a record. */
const PER_RECORD = 5000;
/** How many items are checked and taken in without a pause. */
const PER_PIECE = 1000;
const TURN_MS = 10;

/** Arrays whose resources depend on the item become lists: each task has a shape of its own. */
export const listForms = (spec: RunSpec, inputs: Map<number, ItemsInput>): RunSpec => ({
  ...spec,
  groups: spec.groups.map((group, index): GroupSpec => {
    const { items } = group;
    if (items.kind !== "range" || group.itemResources === undefined) return group;
    const { from, step, count } = items;
    const values = {
      *[Symbol.iterator]() {
        for (let i = 0; i < count; i += 1) yield String(from + i * step);
      },
    };
    inputs.set(index, { kind: "values", json: false, count, values });
    return { ...group, items: { kind: "list", count } };
  }),
});

/** Items given with the document, then those of the stream, up to its end. */
export const takeItems = async (
  lines: AsyncIterator<unknown>,
  inputs: ReadonlyMap<number, ItemsInput>,
  take: (group: number, values: readonly string[], json: boolean) => Promise<void>,
): Promise<void> => {
  let since = performance.now();
  /** In pieces, with turns of the event loop between them: a long list does not keep others waiting. */
  const add = async (group: number, values: readonly string[], json: boolean): Promise<void> => {
    for (let from = 0; from < values.length; from += PER_PIECE) {
      if (performance.now() - since > TURN_MS) {
        await nextTurn();
        since = performance.now();
      }
      await take(group, values.slice(from, from + PER_PIECE), json);
    }
  };
  for (const [index, input] of inputs) {
    if (input.kind !== "values") continue;
    let batch: string[] = [];
    for (const value of input.values) {
      batch.push(value);
      if (batch.length < PER_RECORD) continue;
      await add(index, batch, input.json);
      batch = [];
    }
    if (batch.length > 0) await add(index, batch, input.json);
  }
  for (;;) {
    const line = await lines.next();
    if (line.done === true)
      throw new SlipwayError("bad-request", {
        detail: "the request ended before its last line and submitted nothing",
      });
    const value = line.value as { end?: unknown; group?: unknown; items?: unknown };
    if (value?.end === true) return;
    const { group, items } = value ?? {};
    const input = typeof group === "number" ? inputs.get(group) : undefined;
    if (input?.kind !== "stream" || !Array.isArray(items) || items.length > 100_000)
      throw new SlipwayError("bad-request", {
        detail: "a line of items must be {group, items: […]} of a group with each: {stream}",
      });
    const texts = items.map((item: unknown) => {
      if (input.json) return storedJson(item);
      if (typeof item !== "string")
        throw new SlipwayError("bad-request", { detail: "items of a text stream must be strings" });
      return item;
    });
    await add(group as number, texts, input.json);
  }
};
