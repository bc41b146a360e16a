import type { Group, Run } from "../core/run.ts";

/**
 * The pressure of each group of a run: what its tasks are expected to take along the longest path to the end of the run,
 * they included. An array of a million has one. Kept up to date from the end of the graph towards its beginning: a
 * change goes only as far as it changes something.
 */
export interface Pressures {
  of(group: Group): number;
  /** The longest of all. */
  readonly longest: number;
  /** Its own expectation has changed, or it will not run. */
  touch(group: Group): void;
  /** Brings all up to date; tells the groups whose pressure has changed, and how many groups were looked at. */
  renew(): { readonly changed: readonly Group[]; readonly cost: number };
}

const hasEnded = ({ done, failed, canceled, count }: Group): boolean => done + failed + canceled === count;

/** Groups such that each comes after all those that depend on it. */
const fromTheEnd = (groups: readonly Group[]): Int32Array => {
  const order = new Int32Array(groups.length);
  const open = new Int32Array(groups.length);
  let found = 0;
  for (const { index, dependents } of groups) {
    open[index] = dependents.length;
    if (dependents.length === 0) order[found++] = index;
  }
  for (let next = 0; next < found; next += 1)
    for (const dependency of groups[order[next]!]!.spec.after)
      if ("group" in dependency && (open[dependency.group]! -= 1) === 0) order[found++] = dependency.group;
  return order.subarray(0, found);
};

export const createPressures = (run: Run, expected: (run: Run, group: Group) => number): Pressures => {
  const { groups } = run;
  const order = fromTheEnd(groups);
  const positions = new Int32Array(groups.length);
  for (const [position, index] of order.entries()) positions[index] = position;
  const pressures = new Float64Array(groups.length).fill(-1);
  /** By position: those to look at again. */
  const stale = new Uint8Array(order.length).fill(1);
  let first = 0;

  /** What lies behind a group. A handler for failures is not expected to run. */
  const behind = ({ dependents }: Group): number => {
    let longest = 0;
    for (const { group, on } of dependents) if (on !== "failed") longest = Math.max(longest, pressures[group]!);
    return longest;
  };

  const touch = ({ index }: Group): void => {
    const position = positions[index]!;
    stale[position] = 1;
    first = Math.min(first, position);
  };

  const renew: Pressures["renew"] = () => {
    const changed: Group[] = [];
    // looking for what is stale costs little for each group
    let cost = first < order.length ? (order.length - first) / 64 : 0;
    for (let at = stale.indexOf(1, first); at >= 0; at = stale.indexOf(1, at + 1)) {
      stale[at] = 0;
      const group = groups[order[at]!]!;
      cost += 1 + group.dependents.length;
      const pressure = hasEnded(group) ? 0 : expected(run, group) + behind(group);
      if (pressure === pressures[group.index]) continue;
      pressures[group.index] = pressure;
      changed.push(group);
      for (const dependency of group.spec.after) if ("group" in dependency) stale[positions[dependency.group]!] = 1;
    }
    first = Infinity;
    return { changed, cost };
  };

  renew();

  return {
    of: ({ index }) => pressures[index]!,
    get longest() {
      let longest = 0;
      for (const pressure of pressures) longest = Math.max(longest, pressure);
      return longest;
    },
    touch,
    renew,
  };
};
