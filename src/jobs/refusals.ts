import { type Shape, keyOf } from "../core/run.ts";

/**
 * What follows when a manager takes no job of a shape. Words that speak of a limit will be over one day: the tasks
 * wait, and are tried again with growing pauses. Anything else is tried a few times in a row, then the tasks fail with
 * the manager's words.
 */
export interface Refusals {
  /** Why nothing of a shape is submitted now, or null. */
  paused(shape: Shape, now: number): string | null;
  /** The words of the last refusal, until one was taken. */
  words(shape: Shape): string | null;
  /** The last refusal while it keeps a shape waiting: its words, milliseconds until it is tried again, and its kind. */
  standing(shape: Shape, now: number): StandingRefusal | null;
  /** True when the tasks of this shape are to fail. */
  refused(shape: Shape, words: string, now: number): boolean;
  /** It did not come so far, or its job ended before it began. */
  failed(shape: Shape, words: string, now: number): void;
  taken(shape: Shape): void;
  /** When the next pause is over; Infinity if there is none. */
  next(now: number): number;
}

export interface StandingRefusal {
  readonly words: string;
  readonly inMs: number;
  /** It speaks of a limit, and will be over one day. */
  readonly limit: boolean;
}

const TRIES = 3;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** Shapes that nobody asks about any more are forgotten. */
const MOST_KEPT = 1000;

/** How many jobs there may be at once. */
const SUBMITS = /(?:Max|Grp)Submit/i;
/** Slurm's words around such a reason, and around others. */
const POLICY = /\(job submit limit, user's size and\/or time limits\)/gi;
/** A limit on one job stays one, however long it waits. */
const FOR_EVER = /time ?limit|walltime|MaxWall|PerJob|per job|node count|memory (?:specification|limit)|node config/i;
const LIMIT = /\blimits?\b|limit\b|QOSMax|QOSGrp|AssocMax|AssocGrp|would exceed|too many jobs|\bquota\b/i;

export const isLimit = (words: string): boolean =>
  SUBMITS.test(words) || (!FOR_EVER.test(words.replaceAll(POLICY, "")) && LIMIT.test(words));

interface Note {
  readonly words: string;
  readonly refusals: number;
  readonly pauses: number;
  readonly until: number;
}

const NOTHING: Note = { words: "", refusals: 0, pauses: 0, until: -Infinity };

export const createRefusals = (): Refusals => {
  const notes = new Map<string, Note>();
  const note = (shape: Shape, words: string, refusals: number, now: number): void => {
    const pauses = (notes.get(keyOf(shape)) ?? NOTHING).pauses + 1;
    const until = now + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (pauses - 1));
    notes.delete(keyOf(shape));
    notes.set(keyOf(shape), { words, refusals, pauses, until });
    if (notes.size > MOST_KEPT) notes.delete(notes.keys().next().value!);
  };
  const of = (shape: Shape): Note => notes.get(keyOf(shape)) ?? NOTHING;
  return {
    paused: (shape, now) => (of(shape).until > now ? of(shape).words : null),
    words: (shape) => notes.get(keyOf(shape))?.words ?? null,
    standing: (shape, now) => {
      const note_ = notes.get(keyOf(shape));
      return note_ === undefined
        ? null
        : { words: note_.words, inMs: Math.max(0, note_.until - now), limit: isLimit(note_.words) };
    },
    refused: (shape, words, now) => {
      const refusals = isLimit(words) ? 0 : of(shape).refusals + 1;
      if (refusals >= TRIES) {
        notes.delete(keyOf(shape));
        return true;
      }
      note(shape, words, refusals, now);
      return false;
    },
    failed: (shape, words, now) => note(shape, words, of(shape).refusals, now),
    taken: (shape) => void notes.delete(keyOf(shape)),
    next: (now) => {
      let next = Infinity;
      for (const { until } of notes.values()) if (until > now) next = Math.min(next, until);
      return next;
    },
  };
};
