import { type Lanes, finish, mixText, newLanes } from "./hash.ts";
import type { ItemLink } from "./item-links.ts";
import { isJsonItems, itemsOf, storedAt } from "./item-source.ts";
import type { Keyed } from "./pairing.ts";
import { type Group, type Run, indexOfRow } from "./run.ts";
import { usesOf, workOf } from "./work.ts";
import type { Row } from "./ids.ts";

/**
 * What a task does, in 64 bits: its command, environment, directory, files and item, as they were written, and which tasks it waits
 * for. A task whose fingerprint has changed since its last success has something else to do.
 */

/** Worked out once for each group; nothing of it changes. */
interface OfGroup {
  readonly lanes: Lanes;
  readonly numbered: boolean;
  /** By link with keys: what the tasks of each key before it are. */
  readonly keys: readonly (readonly [Keyed, Float64Array])[];
}

const known = new WeakMap<Group, OfGroup>();

const itemText = ({ spec, items, first }: Group, row: Row): string => {
  const source = itemsOf(spec, items);
  const stored = storedAt(source, row - first);
  return stored === undefined ? "" : `${isJsonItems(source) ? "j" : "t"}${stored}`;
};

/** All items of a group. */
const mixItems = (lanes: Lanes, group: Group): void => {
  if (group.items === undefined) return mixText(lanes, JSON.stringify(group.spec.items));
  for (const item of group.items) mixText(lanes, item);
};

/** For each key a sum that tells one set of items from another, in whatever order they come. */
const sumsOf = (before: Group, pairing: Keyed): Float64Array => {
  const sums = new Float64Array(pairing.size.length);
  const hash = newLanes();
  for (const [place, key] of pairing.before.entries()) {
    Object.assign(hash, newLanes());
    mixText(hash, itemText(before, before.first + place));
    finish(hash, hash);
    sums[key]! += hash.lo >>> 0;
  }
  return sums;
};

const keysOf = (run: Run, links: readonly ItemLink[]): OfGroup["keys"] =>
  links.flatMap(({ before, pairing }) =>
    pairing.kind === "keyed" ? [[pairing, sumsOf(run.groups[before]!, pairing)] as const] : [],
  );

const ofGroup = (run: Run, group: Group): OfGroup => {
  let made = known.get(group);
  if (made !== undefined) return made;
  const { spec, links } = group;
  const lanes = newLanes();
  const uses = usesOf(spec);
  mixText(lanes, workOf(run.spec.cwd, spec));
  if (uses.has("run")) mixText(lanes, String(run.id));
  if (uses.has("name")) mixText(lanes, spec.name);
  for (const dependency of spec.after)
    if ("group" in dependency && !links.some(({ before }) => before === dependency.group))
      mixItems(lanes, run.groups[dependency.group]!);
  made = { lanes, numbered: uses.has("task"), keys: keysOf(run, links) };
  known.set(group, made);
  return made;
};

/** `contents` stands for what is in its inputs, where that counts. */
export const fingerprintOf = (run: Run, group: Group, row: Row, into: Lanes, contents = 0): void => {
  const { lanes, numbered, keys } = ofGroup(run, group);
  into.lo = lanes.lo;
  into.hi = lanes.hi;
  mixText(into, itemText(group, row));
  if (numbered) mixText(into, String(indexOfRow(run, row)));
  for (const [pairing, sums] of keys) mixText(into, String(sums[pairing.after[row - group.first]!]));
  if (contents !== 0) mixText(into, String(contents));
  finish(into, into);
};
