import { fingerprintOf } from "../core/fingerprint.ts";
import { newLanes } from "../core/hash.ts";
import { type ItemLink, placeBefore } from "../core/item-links.ts";
import type { Keyed } from "../core/pairing.ts";
import { type Group, type Run, groupOf } from "../core/run.ts";
import type { Success } from "../core/successes.ts";
import { type TaskFiles, filesOf } from "../core/task-files.ts";
import type { Row } from "../core/ids.ts";
import type { Reason } from "./reasons.ts";

/**
 * What is remembered of a task, before its files are looked at: whether it is the task that succeeded last, and whether all that it
 * waits for was skipped and is older than that success. Pure.
 */
export interface Memory {
  /** What a file came from. */
  readonly of: (file: string) => Success | undefined;
  /** Whether a task before has not run: it was skipped, or not needed. */
  readonly isSkipped: (row: Row) => boolean;
}

/** Whatever all tasks of a group wait for: a reason to run them all, or when the last of it succeeded. */
export interface Before {
  readonly reason?: Reason;
  readonly newest: number;
  readonly name: string;
}

/** It runs, or its files decide. */
export type Recalled = { readonly reason: Reason } | { readonly files: TaskFiles; readonly contents?: Contents };

/** With `skip: content` its inputs are read whatever is remembered: the next run will want to know. */
export interface Contents {
  /** Why it runs, whatever they hold. */
  readonly reason: Reason | undefined;
  /** Whether they hold what they did when it last succeeded. */
  readonly match: (contents: number) => boolean;
}

/** How many tasks are looked at between two pauses. */
const PIECE = 500;

/** The last success of a task before, as a turn; 0 where it says nothing. */
const endedOf = ({ of }: Memory, run: Run, row: Row): number => {
  const group = groupOf(run.groups, row);
  if (group.spec.outputs === undefined) return 0;
  let newest = 0;
  for (const file of filesOf(run, group, row).outputs) newest = Math.max(newest, of(file)?.ended ?? 0);
  return newest;
};

/** Looks at all that a group waits for as a whole, in pieces. */
export function* wholeBefore(memory: Memory, run: Run, { spec, links }: Group): Generator<undefined, Before> {
  let newest = 0;
  let name = "";
  const wholes: Group[] = [];
  for (const dependency of spec.after) {
    if ("run" in dependency) return { reason: { kind: "run", about: String(dependency.run) }, newest, name };
    if (!links.some(({ before }) => before === dependency.group)) wholes.push(run.groups[dependency.group]!);
  }
  let looked = 0;
  for (const { first, count, spec: of } of wholes)
    for (let row = first; row < first + count; row += 1) {
      if (!memory.isSkipped(row)) return { reason: { kind: "before", about: of.name }, newest, name };
      if ((looked += 1) % (PIECE * 20) === 0) yield;
    }
  for (const { first, count, spec: of } of wholes)
    for (let row = first; row < first + count; row += 1) {
      const ended = endedOf(memory, run, row);
      if (ended > newest) [newest, name] = [ended, of.name];
      if ((looked += 1) % PIECE === 0) yield;
    }
  return { newest, name };
}

interface Places {
  readonly from: Uint32Array;
  readonly places: Uint32Array;
}

const placesByKey = new WeakMap<Keyed, Places>();

/** The places before of each key, one after the other. */
const placesOf = (pairing: Keyed): Places => {
  const known = placesByKey.get(pairing);
  if (known !== undefined) return known;
  const from = new Uint32Array(pairing.size.length + 1);
  for (const [key, size] of pairing.size.entries()) from[key + 1] = from[key]! + size;
  const next = from.slice();
  const places = new Uint32Array(pairing.before.length);
  for (const [place, key] of pairing.before.entries()) places[next[key]!++] = place;
  const made = { from, places };
  placesByKey.set(pairing, made);
  return made;
};

function* rowsBefore({ groups }: Run, { before, pairing }: ItemLink, place: number): Generator<Row> {
  const { first } = groups[before]!;
  if (pairing.kind !== "keyed") return void (yield first + placeBefore(pairing, place));
  const key = pairing.after[place]!;
  const { from, places } = placesOf(pairing);
  for (let at = from[key]!; at < from[key + 1]!; at += 1) yield first + places[at]!;
}

/** What the tasks of its own item say. */
const linkedBefore = (memory: Memory, run: Run, { links, first }: Group, row: Row, began: number) => {
  for (const link of links) {
    const { name } = run.groups[link.before]!.spec;
    for (const before of rowsBefore(run, link, row - first)) {
      if (!memory.isSkipped(before)) return { kind: "before", about: name } as const;
      if (endedOf(memory, run, before) > began) return { kind: "since", about: name } as const;
    }
  }
  return undefined;
};

const print = newLanes();

/** Whether its last success was another task, or did something else. */
const hasChanged = (known: readonly (Success | undefined)[], run: Run, group: Group, row: Row, contents = 0) => {
  fingerprintOf(run, group, row, print, contents);
  return known.some((each) => each?.lo !== print.lo || each.hi !== print.hi);
};

/** Why it runs, as far as can be told without its files. */
const reasonOf = (memory: Memory, run: Run, group: Group, row: Row, before: Before, outputs: readonly string[]) => {
  const { skip } = group.spec;
  const reason = (kind: Reason["kind"], about?: string): Reason => (about === undefined ? { kind } : { kind, about });
  if (run.spec.force === true) return reason("force");
  if (skip === "never") return reason("never");
  const known = outputs.map(memory.of);
  const open = known.findIndex((each) => each?.ended === 0);
  if (open >= 0) return reason("unfinished", outputs[open]);
  if (skip === "present") return undefined;
  if (known.includes(undefined)) return reason("new");
  if (skip !== "content" && hasChanged(known, run, group, row)) return reason("changed");
  if (before.reason !== undefined) return before.reason;
  const began = Math.min(...known.map((each) => each!.began));
  if (before.newest > began) return reason("since", before.name);
  return linkedBefore(memory, run, group, row, began);
};

/** Throws a RangeError only for what another version let in. */
export const recall = (memory: Memory, run: Run, group: Group, row: Row, before: Before): Recalled => {
  const files = filesOf(run, group, row);
  const reason = reasonOf(memory, run, group, row, before, files.outputs);
  if (group.spec.skip !== "content") return reason === undefined ? { files } : { reason };
  const match = (contents: number): boolean => !hasChanged(files.outputs.map(memory.of), run, group, row, contents);
  return { files, contents: { reason, match } };
};
