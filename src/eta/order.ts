import type { Group, Run } from "../core/run.ts";

export const isOpen = ({ done, failed, canceled, count }: Group): boolean => done + failed + canceled < count;

/** All groups, those that others wait for first; and how many lie before each on the longest way from a first one. */
export const inOrder = ({ groups }: Run): { readonly ordered: readonly Group[]; readonly levels: Uint32Array } => {
  const levels = new Uint32Array(groups.length);
  const waits = groups.map(({ spec }) => spec.after.filter((each) => "group" in each).length);
  const ordered = groups.filter(({ index }) => waits[index] === 0);
  for (let at = 0; at < ordered.length; at += 1) {
    const { index, dependents } = ordered[at]!;
    for (const { group } of dependents) {
      levels[group] = Math.max(levels[group]!, levels[index]! + 1);
      waits[group]! -= 1;
      if (waits[group] === 0) ordered.push(groups[group]!);
    }
  }
  return { ordered, levels };
};
