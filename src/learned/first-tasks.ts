import type { Group, Run } from "../core/run.ts";
import type { Knowledge } from "./auto.ts";
import { LEAST_KNOWN } from "./request.ts";

/**
 * With `mem: auto` and a template about which little is known, the first tasks of a group go alone: if what they get is too
 * little, they are killed, and not a whole cluster full of them. The others may go as soon as more of the first ended
 * than were killed, by some, or as peaks are known, or when nothing is heard for long (decision 0031).
 */
export interface FirstTasks {
  /** How many tasks of a group may go, from its first; Infinity if nothing holds them back. */
  mayGo(run: Run, group: Group): number;
  /** Since the amount last changed: how many ended with it, and how many were killed. */
  heard(group: Group, ended: number, killed: number): void;
  /** Nothing was heard for long: all may go. */
  open(group: Group): void;
}

/** So many of a group go alone, and one in so many of a large one: what is killed stays far below one in a hundred. */
const FIRST = 8;
const ONE_IN = 400;

/** So many more must have ended than were killed. */
const CLEAR = 2;

export const firstOf = (count: number): number => Math.max(FIRST, Math.ceil(count / ONE_IN));

export const createFirstTasks = (known: Knowledge): FirstTasks => {
  const open = new WeakSet<Group>();
  return {
    mayGo: (run, group) => {
      if (group.spec.auto?.mem !== true || open.has(group)) return Infinity;
      if ((known.templateOf(run, group)?.peaks?.count ?? 0) >= LEAST_KNOWN) return Infinity;
      return group.done + group.failed + group.canceled + firstOf(group.count);
    },
    heard: (group, ended, killed) => {
      if (ended - killed >= CLEAR) open.add(group);
    },
    open: (group) => void open.add(group),
  };
};
