import { quantileOf } from "./window.ts";

/**
 * How much a task should ask for when its template has a history. Asking for little lets more tasks run at once, but
 * those that need more are killed and have to run again with more: the request is the one that costs least in the
 * mean, in core-GB-seconds, kills included.
 *
 * A ladder of amounts is tried from below, at most `attempts` of them, the last being all that there is. Each attempt
 * holds its amount for as long as the task takes, the killed ones too: when they are killed is not known.
 */
export interface MemoryQuestion {
  /** Peak memory of tasks that ended well, in bytes. */
  readonly peaks: ArrayLike<number>;
  /** The task was killed with this much: only those that needed more are like it. 0 before its first attempt. */
  readonly above: number;
  /** This one included. */
  readonly attempts: number;
  /** The most that a node gives. */
  readonly most: number;
  /** What comes with its cores anyway: asking for less of a node lets no other task run beside it. */
  readonly free: number;
}

/** A task may need a little more than the one before it. */
const HEADROOM = 1.125;
/** Steps of an amount between a power of two and the next: few amounts, few shapes. */
const STEPS = 8;

/** The request for a task that needs this many bytes: an eighth more, rounded up to four significant bits. */
export const roomFor = (peak: number): number => {
  const bytes = Math.ceil(Math.max(peak, 1) * HEADROOM);
  const step = Math.max(1, 2 ** Math.floor(Math.log2(bytes)) / STEPS);
  return Math.ceil(bytes / step) * step;
};

/** The amounts that are worth trying, in order, and how many of the tasks each leaves unsatisfied. */
export interface Rungs {
  readonly amounts: readonly number[];
  readonly left: readonly number[];
  /** Tasks that need more than `above`. */
  readonly all: number;
}

export const rungsOf = ({ peaks, above, most }: MemoryQuestion): Rungs => {
  const needs = Array.from(peaks)
    .filter((peak) => peak > above)
    .toSorted((a, b) => a - b);
  const amounts = [...new Set(needs.map((peak) => Math.min(roomFor(peak), most)))].filter((amount) => amount > above);
  const left: number[] = [];
  let satisfied = 0;
  for (const amount of amounts) {
    while (satisfied < needs.length && needs[satisfied]! <= amount) satisfied += 1;
    left.push(needs.length - satisfied);
  }
  return { amounts, left, all: needs.length };
};

/** The request that costs least; undefined where nothing is known about tasks that need so much. */
export const chooseMemory = (question: MemoryQuestion): { request: number; cost: number } | undefined => {
  const { attempts, most, free } = question;
  const { amounts, left, all } = rungsOf(question);
  if (all === 0 || most <= question.above) return undefined;
  const held = (amount: number): number => Math.max(amount, free);
  if (attempts <= 1 || amounts.length === 0) return { request: most, cost: all * held(most) };
  // what it costs to satisfy those that rung i leaves, with the attempts after it
  let after = left.map((count) => count * held(most));
  const cheapest = (count: number, from: number): { request: number; cost: number } => {
    let best = { request: most, cost: count * held(most) };
    for (let j = amounts.length - 1; j >= from; j -= 1) {
      const cost = count * held(amounts[j]!) + after[j]!;
      if (cost < best.cost) best = { request: amounts[j]!, cost };
    }
    return best;
  };
  for (let more = attempts - 2; more > 0; more -= 1)
    after = left.map((count, i) => (count === 0 ? 0 : cheapest(count, i + 1).cost));
  const best = cheapest(all, 0);
  // as much as its cores bring along costs nothing
  return { ...best, request: Math.min(most, Math.max(best.request, free)) };
};

/** Tasks whose peak, or time, must be known before a request is based on them. */
export const LEAST_KNOWN = 10;

/** Seconds to ask for: what 95 of 100 took, and a tenth more. */
export const chooseTime = (tookMs: ArrayLike<number>): number => {
  const sorted = Float64Array.from(tookMs).sort();
  return Math.ceil((quantileOf(sorted, 0.95) * 1.1) / 1000);
};
