import type { Group, Run } from "../core/run.ts";

/**
 * The pressure of each group of a run: what its tasks are expected to take along the longest path to the end of the run,
 * they included. An array of a million has one. Kept up to date from the end of the graph towards its beginning: a
 * change goes only as far as it changes something.
 */
export interface Pressures {
  of(group: Group): number;
  /** The longest of all. */
  longest(): number;
  /** Its own expectation has changed, or it will not run. */
  touch(group: Group): void;
  /** Brings all up to date; tells the groups whose pressure has changed, and how many groups were looked at. */
  renew(): { readonly changed: readonly Group[]; readonly cost: number };
}

const hasEnded = ({ done, failed, canceled, count }: Group): boolean => done + failed + canceled === count;

/** Pairs of a group and one that waits for it. A handler for failures is not expected to run. */
interface Pairs {
  readonly count: number;
  readonly before: Int32Array;
  readonly after: Int32Array;
}

const pairsOf = (groups: readonly Group[]): Pairs => {
  let most = 0;
  for (const { spec } of groups) most += spec.after.length;
  const before = new Int32Array(most);
  const after = new Int32Array(most);
  let count = 0;
  for (const { index, spec } of groups)
    for (const dependency of spec.after) {
      if (!("group" in dependency) || dependency.on === "failed") continue;
      before[count] = dependency.group;
      after[count++] = index;
    }
  return { count, before, after };
};

/** For each group numbers of others, all in one array: those of group i lie from `from[i]` to `from[i + 1]`. */
interface Edges {
  readonly from: Int32Array;
  readonly to: Int32Array;
}

const edgesOf = (groups: number, count: number, of: Int32Array, other: Int32Array): Edges => {
  const from = new Int32Array(groups + 1);
  for (let i = 0; i < count; i += 1) from[of[i]! + 1]! += 1;
  for (let i = 0; i < groups; i += 1) from[i + 1]! += from[i]!;
  const next = from.slice();
  const to = new Int32Array(count);
  for (let i = 0; i < count; i += 1) to[next[of[i]!]!++] = other[i]!;
  return { from, to };
};

/** Groups such that each comes after all those that wait for it. */
const fromTheEnd = (groups: number, { count, before, after }: Pairs): Int32Array => {
  const order = new Int32Array(groups);
  const open = new Int32Array(groups);
  for (let i = 0; i < count; i += 1) open[before[i]!]! += 1;
  const { from, to } = edgesOf(groups, count, after, before);
  let found = 0;
  for (let index = 0; index < groups; index += 1) if (open[index] === 0) order[found++] = index;
  for (let next = 0; next < found; next += 1)
    for (let i = from[order[next]!]!, end = from[order[next]! + 1]!; i < end; i += 1)
      if ((open[to[i]!]! -= 1) === 0) order[found++] = to[i]!;
  return order;
};

/** That of a run with one group, which waits for nothing here. */
const pressureOfOne = (run: Run, group: Group, expected: (run: Run, group: Group) => number): Pressures => {
  let pressure = -1;
  let stale = true;
  const renew: Pressures["renew"] = () => {
    const now = !stale ? pressure : hasEnded(group) ? 0 : expected(run, group);
    const cost = stale ? 1 : 0;
    stale = false;
    if (now === pressure) return { changed: [], cost };
    pressure = now;
    return { changed: [group], cost };
  };
  renew();
  return {
    of: () => pressure,
    longest: () => pressure,
    touch: () => {
      stale = true;
    },
    renew,
  };
};

/** All by position in that order: a sweep goes through memory from one end to the other. */
export const createPressures = (run: Run, expected: (run: Run, group: Group) => number): Pressures => {
  const { groups } = run;
  const count = groups.length;
  if (count === 1) return pressureOfOne(run, groups[0]!, expected);
  const pairs = pairsOf(groups);
  const order = fromTheEnd(count, pairs);
  const positions = new Int32Array(count);
  for (let position = 0; position < count; position += 1) positions[order[position]!] = position;
  const placed = (indices: Int32Array): Int32Array => indices.map((index) => positions[index]!);
  const [earlier, later] = [placed(pairs.before), placed(pairs.after)];
  const behind = edgesOf(count, pairs.count, earlier, later);
  const before = edgesOf(count, pairs.count, later, earlier);
  const pressures = new Float64Array(count).fill(-1);
  /** Those to look at again. */
  const stale = new Uint8Array(count).fill(1);
  let first = 0;

  const longestBehind = (at: number): number => {
    let longest = 0;
    for (let i = behind.from[at]!, end = behind.from[at + 1]!; i < end; i += 1)
      longest = Math.max(longest, pressures[behind.to[i]!]!);
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
    let cost = first < count ? (count - first) / 64 : 0;
    for (let at = stale.indexOf(1, first); at >= 0; at = stale.indexOf(1, at + 1)) {
      stale[at] = 0;
      const group = groups[order[at]!]!;
      cost += 1 + behind.from[at + 1]! - behind.from[at]!;
      const pressure = hasEnded(group) ? 0 : expected(run, group) + longestBehind(at);
      if (pressure === pressures[at]) continue;
      pressures[at] = pressure;
      changed.push(group);
      for (let i = before.from[at]!, end = before.from[at + 1]!; i < end; i += 1) stale[before.to[i]!] = 1;
    }
    first = Infinity;
    return { changed, cost };
  };

  renew();

  return {
    of: ({ index }) => pressures[positions[index]!]!,
    longest: () => {
      let longest = 0;
      for (const pressure of pressures) longest = Math.max(longest, pressure);
      return longest;
    },
    touch,
    renew,
  };
};
