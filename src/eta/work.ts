/** What is left of a run, as an estimate sees it. Times are milliseconds from now. */

/** How long tasks of one template take. */
export interface Times {
  /** Templates are drawn independently of each other; groups of one template together. */
  readonly key: number;
  /** Some of the durations that were seen, or one guess. Never empty. */
  readonly values: ArrayLike<number>;
  /** It is a guess: nothing like it has ended yet. */
  readonly guess?: Guess;
}

/** How far off a guess may be, as the standard deviation of the logarithm of a factor. */
export interface Guess {
  readonly off: number;
  /** The same for all guesses of one level together: what lies at one depth of a graph is often of one kind. */
  readonly together: number;
  readonly level: number;
}

export interface OpenGroup {
  /** Tasks that have not begun. */
  readonly waiting: number;
  /** For each task that runs: for how long it has. */
  readonly running: readonly number[];
  /** Open groups, by position, that end before it begins. */
  readonly after: readonly number[];
  /** Those of them whose tasks it follows one by one: each of its own begins when that of its item has ended. */
  readonly byItem?: readonly number[];
  /** How many of its tasks one unit of capacity runs at once. */
  readonly atOnce: number;
  readonly priority: number;
  readonly times: Times;
}

export interface OpenWork {
  readonly groups: readonly OpenGroup[];
  /** Units of capacity, now and when pilots that wait in the manager come: each a list of possible times from now. */
  readonly units: number;
  readonly arrivals: readonly { readonly units: number; readonly waits: ArrayLike<number> }[];
  /** Work of other runs that goes first, in milliseconds of the whole capacity. */
  readonly aheadMs: number;
  /** How many attempts a task takes on average. */
  readonly attempts: number;
}

export const meanOf = (values: ArrayLike<number>): number => {
  let sum = 0;
  for (let i = 0; i < values.length; i += 1) sum += values[i]!;
  return sum / values.length;
};

/** What is left of a task that has run for so long and was expected to take `mean`. */
const restOf = (mean: number, elapsed: number): number => Math.max(mean - elapsed, 0);

/** Longest expected path from the start of each group to the end of the run, itself included. */
export const pathsOf = (groups: readonly OpenGroup[]): Float64Array => {
  const paths = new Float64Array(groups.length);
  // a group comes after those that it waits for
  for (let i = groups.length - 1; i >= 0; i -= 1) {
    const { waiting, running, after, times } = groups[i]!;
    const mean = meanOf(times.values);
    const own = waiting > 0 ? mean : running.reduce((most, elapsed) => Math.max(most, restOf(mean, elapsed)), 0);
    paths[i]! += own;
    for (const before of after) paths[before] = Math.max(paths[before]!, paths[i]!);
  }
  return paths;
};

/** The least that is left by what is expected: the critical path, and all work over all capacity. */
export const leastMs = (work: OpenWork): number => {
  const paths = pathsOf(work.groups);
  let path = 0;
  for (const each of paths) path = Math.max(path, each);
  const units = work.units + work.arrivals.reduce((sum, each) => sum + each.units, 0);
  return Math.max(path, units === 0 ? 0 : workMs(work.groups) / units);
};

/** All of it on one unit of capacity. */
export const workMs = (groups: readonly OpenGroup[]): number => {
  let sum = 0;
  for (const { waiting, running, times, atOnce } of groups) {
    const mean = meanOf(times.values);
    sum += (waiting * mean) / atOnce;
    for (const elapsed of running) sum += restOf(mean, elapsed) / atOnce;
  }
  return sum;
};
