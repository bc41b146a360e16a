import type { Random } from "./random.ts";
import type { OpenGroup, OpenWork, Times } from "./work.ts";

/**
 * One way in which the rest of a run may go: durations are drawn, and tasks take capacity as it becomes free, those
 * with the longest path to the end first. Many tasks of a group go together while many are left and singly at the end,
 * so that a million cost little and the tail is still right.
 */

/** How far off what was learned may be, as the logarithm of a factor: for all templates, and for each. */
const OFF_TOGETHER = 0.05;
const OFF = 0.15;
/** Spread of single tasks, where too few were seen to tell. */
const SPREAD_GUESS = 0.5;
const SPREAD_LEAST = 0.05;
const ENOUGH = 5;
/** A task that runs longer than any before takes about this much longer still. */
const OVERTIME = 0.25;

/** What all templates of one replay have in common. */
interface Shared {
  readonly factor: number;
  /** Of the normal distribution, for each level of guesses. */
  guesses(level: number): number;
}

interface Drawn {
  readonly mean: number;
  readonly sd: number;
  one(): number;
}

/** A factor whose mean is 1 and whose logarithm has this standard deviation. */
const factorOf = (random: Random, sd: number): number => Math.exp(sd * random.normal() - (sd * sd) / 2);

const drawTimes = ({ values, guess }: Times, random: Random, shared: Shared): Drawn => {
  const n = values.length;
  let mean = 0;
  for (let i = 0; i < n; i += 1) mean += values[i]! / n;
  let variance = 0;
  for (let i = 0; i < n; i += 1) variance += (values[i]! - mean) ** 2 / n;
  const seen = mean > 0 ? Math.sqrt(variance) / mean : 0;
  // few values say little about how much they differ
  const weight = Math.min(1, (n - 1) / ENOUGH);
  const spread = Math.max(
    SPREAD_LEAST,
    guess !== undefined ? SPREAD_GUESS : weight * seen + (1 - weight) * SPREAD_GUESS,
  );
  const off = Math.hypot(OFF, spread / Math.sqrt(n));
  const factor =
    shared.factor *
    (guess === undefined
      ? factorOf(random, off)
      : Math.exp(guess.off * random.normal() + guess.together * shared.guesses(guess.level)));
  const jitter = guess !== undefined ? SPREAD_GUESS : (1 - weight) * SPREAD_GUESS;
  return {
    mean: mean * factor,
    sd: mean * factor * spread,
    one: () => {
      const value = values[Math.floor(random.uniform() * n)]! * factor;
      return jitter === 0 ? value : value * factorOf(random, jitter);
    },
  };
};

/** The whole duration of a task that has run for `elapsed` already. */
const drawBeyond = (drawn: Drawn, elapsed: number, random: Random): number => {
  for (let tries = 0; tries < 8; tries += 1) {
    const value = drawn.one();
    if (value > elapsed) return value;
  }
  return elapsed * (1 + OVERTIME * Math.abs(random.normal()));
};

/** A heap of ends, the earliest first. */
class Ends {
  readonly #at: number[] = [];
  readonly #what: number[] = [];

  get size(): number {
    return this.#at.length;
  }

  push(at: number, what: number): void {
    let i = this.#at.length;
    this.#at.push(at);
    this.#what.push(what);
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (this.#at[up]! <= at) break;
      this.#set(i, this.#at[up]!, this.#what[up]!);
      i = up;
    }
    this.#set(i, at, what);
  }

  pop(): readonly [at: number, what: number] {
    const first = [this.#at[0]!, this.#what[0]!] as const;
    const at = this.#at.pop()!;
    const what = this.#what.pop()!;
    const n = this.#at.length;
    if (n === 0) return first;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      if (down >= n) break;
      if (down + 1 < n && this.#at[down + 1]! < this.#at[down]!) down += 1;
      if (this.#at[down]! >= at) break;
      this.#set(i, this.#at[down]!, this.#what[down]!);
      i = down;
    }
    this.#set(i, at, what);
    return first;
  }

  #set(i: number, at: number, what: number): void {
    this.#at[i] = at;
    this.#what[i] = what;
  }
}

const EPSILON = 1e-9;
/** Groups that find no room before the others wait too. */
const MOST_MISSES = 8;

interface Rest {
  readonly group: OpenGroup;
  readonly drawn: Drawn;
  left: number;
  busy: number;
  /** Tasks of it that have not ended. */
  open: number;
  waits: number;
  /** What it follows one by one, and how many of its own tasks one of those keeps waiting. */
  readonly follows: { readonly rest: number; readonly keeps: number }[];
  readonly dependents: number[];
}

/** Groups in the order in which they get capacity: higher priority, then the longer path. */
export const orderOf = (groups: readonly OpenGroup[], paths: ArrayLike<number>): Uint32Array => {
  const order = Uint32Array.from(groups.keys());
  return order.sort((a, b) => groups[b]!.priority - groups[a]!.priority || paths[b]! - paths[a]! || a - b);
};

const restsOf = ({ groups }: OpenWork, random: Random): Rest[] => {
  const levels: number[] = [];
  const shared: Shared = {
    factor: factorOf(random, OFF_TOGETHER),
    guesses: (level) => (levels[level] ??= random.normal()),
  };
  const drawn = new Map<number, Drawn>();
  const rests = groups.map((group): Rest => {
    let of = drawn.get(group.times.key);
    if (of === undefined) drawn.set(group.times.key, (of = drawTimes(group.times, random, shared)));
    const { waiting, running, after, byItem = [] } = group;
    const waits = after.length - byItem.length;
    return {
      group,
      drawn: of,
      left: waiting,
      busy: 0,
      open: waiting + running.length,
      waits,
      follows: [],
      dependents: [],
    };
  });
  for (const [i, { group, left, follows }] of rests.entries())
    for (const before of group.after) {
      const { open, dependents } = rests[before]!;
      if (group.byItem?.includes(before) === true)
        follows.push({ rest: before, keeps: Math.min(1, left / Math.max(1, open)) });
      else dependents.push(i);
    }
  return rests;
};

/** Milliseconds until all of it has ended. `rank` is each group's place in the order. */
export const replay = (work: OpenWork, rank: Uint32Array, random: Random): number => {
  const rests = restsOf(work, random);
  const ends = new Ends();
  /** Ready groups with tasks left, by rank. */
  const ready: number[] = [];
  let free = work.units;
  let now = 0;
  let last = 0;
  const arrivals = work.arrivals.map(({ units, waits }) => {
    ends.push(waits[Math.floor(random.uniform() * waits.length)]!, -1 - units);
    return units;
  });
  const all = work.units + arrivals.reduce((sum, units) => sum + units, 0);

  const enter = (i: number): void => {
    let at = ready.length;
    while (at > 0 && rank[ready[at - 1]!]! > rank[i]!) at -= 1;
    ready.splice(at, 0, i);
  };

  const release = (i: number): void => {
    const pending = [i];
    for (let each = pending.pop(); each !== undefined; each = pending.pop()) {
      const rest = rests[each]!;
      if (rest.left > 0) enter(each);
      else if (rest.busy === 0)
        for (const next of rest.dependents) if ((rests[next]!.waits -= 1) === 0) pending.push(next);
    }
  };

  /** How many of its tasks could begin: those whose own predecessors have ended. */
  const freeOf = ({ left, follows }: Rest): number => {
    let kept = 0;
    for (const { rest, keeps } of follows) kept = Math.max(kept, keeps * rests[rest]!.open);
    return Math.floor(left - kept + EPSILON);
  };

  const begin = (i: number, count: number): void => {
    const { drawn, group } = rests[i]!;
    let took = 0;
    if (count <= 4) for (let n = 0; n < count; n += 1) took += drawn.one();
    else took = Math.max(count * drawn.mean * 0.1, count * drawn.mean + Math.sqrt(count) * drawn.sd * random.normal());
    free -= 1 / group.atOnce;
    rests[i]!.busy += 1;
    ends.push(now + took * work.attempts, i + rests.length * count);
  };

  const fill = (): void => {
    let misses = 0;
    for (let at = 0; at < ready.length && free > EPSILON && misses < MOST_MISSES;) {
      const i = ready[at]!;
      const rest = rests[i]!;
      const share = 1 / rest.group.atOnce;
      let may = freeOf(rest);
      while (may > 0 && free + EPSILON >= share) {
        const count = Math.min(may, Math.max(1, Math.floor((rest.left * share) / (2 * all))));
        rest.left -= count;
        may -= count;
        begin(i, count);
      }
      if (rest.left === 0) ready.splice(at, 1);
      else {
        at += 1;
        // one that waits for its items leaves the room to others
        if (may > 0) misses += 1;
      }
    }
  };

  for (const [i, { group, drawn }] of rests.entries())
    for (const elapsed of group.running) {
      rests[i]!.busy += 1;
      free -= 1 / group.atOnce;
      ends.push(drawBeyond(drawn, elapsed, random) - elapsed, i + rests.length);
    }
  for (const [i, { waits }] of rests.entries()) if (waits === 0) release(i);
  fill();
  while (ends.size > 0) {
    const [at, what] = ends.pop();
    now = at;
    if (what < 0) free += -1 - what;
    else {
      last = at;
      const i = what % rests.length;
      const rest = rests[i]!;
      free += 1 / rest.group.atOnce;
      rest.busy -= 1;
      rest.open -= Math.floor(what / rests.length);
      if (rest.busy === 0 && rest.left === 0) release(i);
    }
    fill();
  }
  return last + work.aheadMs;
};
