import type { Group, Run } from "../core/run.ts";
import { PIECE, type Steps } from "./steps.ts";

export const isOpen = ({ done, failed, canceled, count }: Group): boolean => done + failed + canceled < count;

/** All groups, those that others wait for first; and how many lie before each on the longest way from a first one. */
export interface Ordered {
  readonly ordered: readonly Group[];
  readonly levels: Uint32Array;
}

const waitsOf = ({ spec }: Group): number => {
  let count = 0;
  for (const each of spec.after) if ("group" in each) count += 1;
  return count;
};

export function* inOrder({ groups }: Run): Steps<Ordered> {
  const levels = new Uint32Array(groups.length);
  const waits = new Uint32Array(groups.length);
  const ordered: Group[] = [];
  for (let at = 0; at < groups.length; at += 1) {
    if (at % PIECE === 0) yield;
    waits[at] = waitsOf(groups[at]!);
    if (waits[at] === 0) ordered.push(groups[at]!);
  }
  for (let at = 0; at < ordered.length; at += 1) {
    if (at % PIECE === 0) yield;
    const { index, dependents } = ordered[at]!;
    for (const { group } of dependents) {
      levels[group] = Math.max(levels[group]!, levels[index]! + 1);
      waits[group]! -= 1;
      if (waits[group] === 0) ordered.push(groups[group]!);
    }
  }
  return { ordered, levels };
}
