/**
 * What to submit of one bucket, and what to take back. Pure.
 *
 * At most `limit` submissions of a bucket wait in the manager; an array counts as one. What goes first in order is
 * submitted first. One that waits is taken back only for one that goes before it and has a higher priority, or the same
 * and at least twice its pressure: a small change is not worth a place in the manager's queue. What was taken back
 * waits here behind whom it made room for, so nothing goes back and forth.
 */

/** Where a task stands. */
export interface Place {
  readonly priority: number;
  /** Of equal priorities the earliest goes first, and of equal starts the highest pressure. */
  readonly start: number;
  readonly pressure: number;
}

/** A submission that waits in the manager, at least in part. */
export interface Submission extends Place {
  readonly id: number;
  /** It was taken back, and its end has not been seen yet. */
  readonly leaving: boolean;
}

/** Tasks of one group that wait here. */
export interface Head extends Place {
  readonly tasks: number;
}

export interface Situation {
  readonly limit: number;
  /** The most tasks in one submission; 1: there are no arrays. */
  readonly mostInArray: number;
  readonly submitted: readonly Submission[];
  /** In order. */
  readonly heads: Iterable<Head>;
}

export interface Decision {
  /** How many tasks each next submission has: always of the first that waits. */
  readonly submit: readonly number[];
  readonly takeBack: readonly number[];
}

/** An array holds at most this many, whatever the manager allows. */
export const MOST_IN_ARRAY = 100;

/** How many that are taken back for others are looked at in one go. */
const MOST_TAKEN_BACK = 100;

export const goesBefore = (a: Place, b: Place): boolean => {
  if (a.priority !== b.priority) return a.priority > b.priority;
  return a.start === b.start ? a.pressure > b.pressure : a.start < b.start;
};

export const isWorthIt = (newcomer: Place, waiting: Place): boolean =>
  goesBefore(newcomer, waiting) &&
  (newcomer.priority > waiting.priority ||
    (newcomer.pressure > waiting.pressure && newcomer.pressure >= 2 * waiting.pressure));

/** The next submissions, one after the other. */
function* submissionsOf({ heads, mostInArray }: Situation): Generator<Head> {
  const most = Math.max(1, Math.min(mostInArray, MOST_IN_ARRAY));
  for (const head of heads)
    for (let left = head.tasks; left > 0; left -= most) yield { ...head, tasks: Math.min(most, left) };
}

/** Last in order first; of equals the one that came last. */
const worstFirst = (a: Submission, b: Submission): number =>
  goesBefore(a, b) ? 1 : goesBefore(b, a) ? -1 : b.id - a.id;

export const decide = (situation: Situation): Decision => {
  const { limit, submitted } = situation;
  const submit: number[] = [];
  const takeBack: number[] = [];
  const staying = submitted.filter(({ leaving }) => !leaving).toSorted(worstFirst);
  let free = limit - submitted.length;
  /** Places that will be free when those that leave are gone. */
  let promised = Math.min(submitted.length - staying.length, submitted.length - staying.length + free);
  for (const next of submissionsOf(situation)) {
    if (free > 0) {
      free -= 1;
      submit.push(next.tasks);
      continue;
    }
    if (promised > 0) {
      promised -= 1;
      continue;
    }
    const worst = staying[takeBack.length];
    if (worst === undefined || takeBack.length >= MOST_TAKEN_BACK || !isWorthIt(next, worst)) break;
    takeBack.push(worst.id);
  }
  return { submit, takeBack };
};
