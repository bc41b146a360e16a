import { SlipwayError } from "../errors.ts";
import { type JournalIo, errnoOf, nodeIo } from "./io.ts";
import { type SegmentMark, sameId } from "./names.ts";
import { peekSegment } from "./peek.ts";
import { type Part, type Plan, planJournal } from "./plan.ts";
import { type Opened, closeAll, openAll, walkJournal } from "./read.ts";
import { inspectSnapshot } from "./snapshot.ts";
import type { Replay } from "./walk.ts";

/** One way to the journal's end. */
export interface Way {
  /** The snapshot it begins with; undefined: the very beginning of the journal. */
  readonly from: string | undefined;
  /** Records up to this one are in that snapshot. */
  readonly fromLsn: number;
  /** Reads the same records every time; a running server may meanwhile have added some after `lastLsn`. */
  read(replay: Replay): Promise<{ readonly records: number; readonly lastLsn: number }>;
}

export interface History {
  /** What a start reads: the newest snapshot, and what follows. */
  readonly newest: Way;
  /** The longest way there is: with everything that compactions left, all that ever happened. */
  readonly oldest: Way;
  close(): Promise<void>;
}

const sealedPart = (mark: SegmentMark): Part => ({
  id: mark,
  mark,
  firstLsn: mark.firstLsn,
  beforeLsn: undefined,
  missing: false,
  followed: false,
});

/**
 * Goes back from the snapshot that a plan begins with, as far as files exist: the segment where a snapshot was taken
 * names the segments before it, and the snapshot that those are based on.
 */
const planOldest = async (io: JournalIo, dir: string, plan: Plan): Promise<Plan> => {
  const exists = (mark: SegmentMark): boolean => plan.segments.some((id) => sameId(id, mark));
  let longest = plan;
  let parts = plan.parts;
  let base = plan.snapshot?.upTo;
  while (base !== undefined && exists(base)) {
    const { start } = await peekSegment(io, dir, base);
    // a copy made by repair says nothing about what came before
    if (start === undefined || start.why === "salvage" || !start.chain.every(exists)) break;
    parts = [...start.chain.map(sealedPart), sealedPart(base), ...parts];
    base = start.base;
    if (base === undefined) return { ...plan, snapshot: undefined, parts };
    const upTo = base;
    if (!plan.snapshots.some((id) => sameId(id, upTo))) continue;
    const snapshot = await inspectSnapshot(io, dir, upTo);
    if ("upTo" in snapshot && snapshot.upTo.length === upTo.length) longest = { ...plan, snapshot, parts };
  }
  return longest;
};

const ATTEMPTS = 10;

/** Opens a journal to read it more than once, changing nothing; throws `journal-damaged` when part of it is lost. */
export const openHistory = async (dir: string, io: JournalIo = nodeIo): Promise<History> => {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const opened: Opened[] = [];
    const close = async (): Promise<void> => {
      for (const files of opened.splice(0)) await closeAll(files);
    };
    const wayOf = async (plan: Plan): Promise<Way | undefined> => {
      const files = await openAll(io, dir, plan);
      if (files === undefined) return undefined;
      opened.push(files);
      return {
        from: plan.snapshot?.name,
        fromLsn: plan.snapshot?.upTo.lastLsn ?? 0,
        read: (replay) => walkJournal(io, dir, plan, { replay }, files),
      };
    };
    try {
      const plan = await planJournal(io, dir);
      // what looks lost may have been compacted between two looks; at the last attempt, reading it reports the damage
      if (plan.problems.length === 0 || attempt === ATTEMPTS) {
        const newest = await wayOf(plan);
        const oldest = newest === undefined ? undefined : await wayOf(await planOldest(io, dir, plan));
        if (newest !== undefined && oldest !== undefined) return { newest, oldest, close };
      }
    } catch (error) {
      await close();
      if (errnoOf(error) !== "ENOENT") throw error;
    }
    await close();
  }
  throw new SlipwayError("internal", { detail: `${dir} changes faster than it can be read` });
};
