import { SlipwayError } from "../errors.ts";
import { type JournalIo, errnoOf } from "./io.ts";
import { type SegmentId, type SegmentMark, compareIds, parseName, sameId, segmentName, snapshotName } from "./names.ts";
import { type Peek, peekSegment, readHead, wasUsed } from "./peek.ts";
import { type SnapshotInfo, inspectSnapshot } from "./snapshot.ts";

/** Something lost. `lostRecords` is absent where nothing shows how many there were. */
export interface Problem {
  readonly segment: string;
  readonly offset: number;
  readonly detail: string;
  readonly lostRecords?: number | undefined;
  readonly lostBytes?: number | undefined;
}

export const damaged = (problem: Problem): SlipwayError => new SlipwayError("journal-damaged", { ...problem });

/** One segment to replay. */
export interface Part {
  readonly id: SegmentId;
  /** Its sealed length; absent if nothing sealed it: read as far as it is valid. */
  readonly mark: SegmentMark | undefined;
  readonly firstLsn: number | undefined;
  /** Records from this LSN on are repeated in a later segment. */
  readonly beforeLsn: number | undefined;
  readonly missing: boolean;
  /** A later segment is known to have existed, so nothing here can be a torn tail. */
  readonly followed: boolean;
}

/** What a journal directory holds and in which order to read it. */
export interface Plan {
  readonly segments: readonly SegmentId[];
  readonly snapshots: readonly SegmentId[];
  /** Replayed first. */
  readonly snapshot: SnapshotInfo | undefined;
  /** A snapshot that is needed but damaged. */
  readonly brokenSnapshot: SegmentMark | undefined;
  readonly parts: readonly Part[];
  /** No segment says what came before it: every START is damaged. */
  readonly unlisted: boolean;
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
  /** At least as high as every epoch and number in any file name. */
  readonly highest: SegmentId;
}

const list = async (io: JournalIo, dir: string): Promise<string[]> => {
  try {
    return await io.readdir(dir);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
};

const partOf = (id: SegmentId, more: Partial<Part>): Part => ({
  id,
  mark: undefined,
  firstLsn: undefined,
  beforeLsn: undefined,
  missing: false,
  followed: false,
  ...more,
});

/** The newest segment with a START of its own, and the newer ones that once had one. */
const findTop = async (
  io: JournalIo,
  dir: string,
  segments: readonly SegmentId[],
  head: SegmentId | undefined,
  warnings: string[],
): Promise<{ top: Peek | undefined; broken: Peek[] }> => {
  const broken: Peek[] = [];
  for (const id of segments.toReversed()) {
    const peek = await peekSegment(io, dir, id);
    // Copies made by repair count only where a START lists them.
    if (peek.start?.why === "salvage") continue;
    if (peek.start !== undefined) return { top: peek, broken };
    if ((head !== undefined && compareIds(head, id) >= 0) || (await wasUsed(io, dir, id))) broken.unshift(peek);
    else warnings.push(`${segmentName(id)} was created but never used; it is ignored`);
  }
  return { top: undefined, broken };
};

/** Decides what to read. Reads only the ends of files; throws only when files cannot be read or have a newer format. */
export const planJournal = async (io: JournalIo, dir: string): Promise<Plan> => {
  // The head first: a segment exists before its head does, so a running server cannot make it look lost.
  const head = await readHead(io, dir);
  const ids = (await list(io, dir)).map(parseName).filter((id) => id !== undefined);
  const segments = ids.filter((id) => id.kind === "log").sort(compareIds);
  const snapshots = ids.filter((id) => id.kind === "snap").sort(compareIds);
  const problems: Problem[] = [];
  const warnings: string[] = [];
  const { top, broken } = await findTop(io, dir, segments, head, warnings);

  const exists = (id: SegmentId): boolean => segments.some((other) => sameId(other, id));
  const chain = top?.start?.chain ?? [];
  const base = top?.start?.base;
  const line: Part[] = chain.map((mark) => partOf(mark, { mark, firstLsn: mark.firstLsn, missing: !exists(mark) }));
  if (top !== undefined) {
    const { firstLsn } = top.start!;
    line.push(partOf(top.id, { firstLsn, beforeLsn: broken[0]?.header?.firstLsn, followed: broken.length > 0 }));
  }
  for (const [index, peek] of broken.entries()) {
    problems.push({ segment: segmentName(peek.id), ...peek.problem! });
    const beforeLsn = broken[index + 1]?.header?.firstLsn;
    line.push(partOf(peek.id, { firstLsn: peek.header?.firstLsn, beforeLsn, followed: index + 1 < broken.length }));
  }
  const last = line.at(-1);
  const headLost = (id: SegmentId | undefined): boolean =>
    head !== undefined && (id === undefined || compareIds(head, id) > 0);
  if (last !== undefined && headLost(last.id)) line[line.length - 1] = { ...last, followed: true };

  /** How many parts of the line a snapshot covers; undefined: it belongs to a different line. */
  const coverage = (id: SegmentId, length: number | undefined): number | undefined => {
    if (base !== undefined && sameId(base, id) && (length === undefined || base.length === length)) return 0;
    const index = line.findIndex((part) => sameId(part.id, id));
    const mark = line[index]?.mark;
    if (index >= 0 && (mark === undefined || length === undefined || mark.length === length)) return index + 1;
    return line.length === 0 ? 0 : undefined;
  };
  let snapshot: SnapshotInfo | undefined;
  let covered = 0;
  const bad: { id: SegmentId; covered: number; offset: number; detail: string }[] = [];
  for (const id of snapshots.toReversed()) {
    const found = await inspectSnapshot(io, dir, id);
    const count = coverage(id, "upTo" in found ? found.upTo.length : undefined);
    if (count === undefined) {
      if (base === undefined || compareIds(id, base) > 0) {
        warnings.push(`${snapshotName(id)} does not belong to this journal's history; it is ignored`);
      }
    } else if ("upTo" in found) {
      snapshot = found;
      covered = count;
      break;
    } else bad.push({ id, covered: count, ...found });
  }

  let brokenSnapshot: SegmentMark | undefined;
  const needed = Math.max(-1, ...line.map((part, index) => (part.missing ? index : -1)));
  const culprit = snapshot === undefined ? bad.find((one) => base !== undefined || one.covered > needed) : undefined;
  if (culprit !== undefined && (base !== undefined || needed >= 0 || line.length === 0)) {
    problems.push({ segment: snapshotName(culprit.id), offset: culprit.offset, detail: culprit.detail });
    brokenSnapshot = [...chain, ...(base === undefined ? [] : [base])].find((mark) => sameId(mark, culprit.id)) ?? {
      ...culprit.id,
      length: 0,
      firstLsn: 0,
      lastLsn: (line[culprit.covered]?.firstLsn ?? 1) - 1,
    };
    covered = culprit.covered;
  } else if (snapshot === undefined && base !== undefined) {
    const detail = `the snapshot is missing (records up to ${base.lastLsn})`;
    problems.push({ segment: snapshotName(base), offset: 0, detail, lostRecords: base.lastLsn });
  }
  for (const one of bad) {
    if (one !== culprit || brokenSnapshot === undefined)
      warnings.push(`${snapshotName(one.id)}: ${one.detail}; it is ignored`);
  }

  const parts = line.slice(covered);
  for (const { missing, mark } of parts) {
    if (!missing || mark === undefined) continue;
    problems.push({
      segment: segmentName(mark),
      offset: 0,
      detail: `the segment is missing (records ${mark.firstLsn} to ${mark.lastLsn})`,
      lostRecords: mark.lastLsn - mark.firstLsn + 1,
      lostBytes: mark.length,
    });
  }
  if (headLost(last?.id ?? snapshot?.upTo)) {
    problems.push({ segment: segmentName(head!), offset: 0, detail: "the segment, the newest one, is missing" });
  }
  const highest = [...ids, ...(head === undefined ? [] : [head])].reduce(
    (most, id) => ({ epoch: Math.max(most.epoch, id.epoch), number: Math.max(most.number, id.number) }),
    { epoch: 0, number: 0 },
  );
  return {
    segments,
    snapshots,
    snapshot,
    brokenSnapshot,
    parts,
    unlisted: top === undefined,
    problems,
    warnings,
    highest,
  };
};
