import { itemsOf, storedAt } from "../core/item-source.ts";
import type { Group, Run } from "../core/run.ts";
import type { GroupSpec } from "../core/spec.ts";
import type { Row } from "../core/ids.ts";
import { type Lanes, finish, mixText, newLanes, numberOf } from "../core/hash.ts";

/**
 * Which tasks are alike. Of one template are those with the same group name, the same command as it was written, and
 * the same cluster; one with the same item too is the same task again.
 */

/** By group of one run: the hash of its template before its end, which identities go on from. */
export interface RunKeys {
  readonly lanes: Int32Array;
  /** The template's number. */
  readonly numbers: Float64Array;
}

const mixTemplate = (lanes: Lanes, { name, command, cluster, items }: GroupSpec, defaultCluster: string): void => {
  mixText(lanes, name);
  if (typeof command === "string") mixText(lanes, command);
  else for (const word of command) mixText(lanes, word);
  mixText(lanes, typeof command === "string" ? "shell" : "words");
  mixText(lanes, cluster ?? defaultCluster);
  // a task alone is not one of an array: it is its template's only one
  mixText(lanes, items.kind === "one" ? "one" : "many");
};

export const keysOf = ({ groups }: Run, defaultCluster: string): RunKeys => {
  const lanes = new Int32Array(groups.length * 2);
  const numbers = new Float64Array(groups.length);
  const hash: Lanes = newLanes();
  const ended: Lanes = newLanes();
  for (const { index, spec } of groups) {
    Object.assign(hash, newLanes());
    mixTemplate(hash, spec, defaultCluster);
    lanes[index * 2] = hash.lo;
    lanes[index * 2 + 1] = hash.hi;
    finish(hash, ended);
    numbers[index] = numberOf(ended);
  }
  return { lanes, numbers };
};

/** Remembers those of the run that was asked for last, but not the run: who asks about one group asks about the next, too. */
export const rememberLast = (make: (run: Run) => RunKeys): ((run: Run) => RunKeys) => {
  let last: { readonly run: WeakRef<Run>; readonly keys: RunKeys } | undefined;
  return (run) => {
    if (last?.run.deref() !== run) last = { run: new WeakRef(run), keys: make(run) };
    return last.keys;
  };
};

const itemText = ({ spec, items, first }: Group, row: Row): string => storedAt(itemsOf(spec, items), row - first) ?? "";

/** The hash of one task's identity. */
export const identityOf = ({ lanes }: RunKeys, group: Group, row: Row, into: Lanes): void => {
  into.lo = lanes[group.index * 2]!;
  into.hi = lanes[group.index * 2 + 1]!;
  mixText(into, itemText(group, row));
  finish(into, into);
};
