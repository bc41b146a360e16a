import { join } from "node:path";
import { SlipwayError } from "../errors.ts";
import { type IoFile, type JournalIo, errnoOf, nodeIo } from "./io.ts";
import { type SegmentMark, segmentName, snapshotName } from "./names.ts";
import { type Plan, type Problem, damaged, planJournal } from "./plan.ts";
import { type Replay, type WalkHandlers, walkSegment, walkSnapshot } from "./walk.ts";

/** What a journal held, and the chain that a new segment must name as its past. */
export interface Loaded {
  readonly plan: Plan;
  readonly base: SegmentMark | undefined;
  readonly chain: readonly SegmentMark[];
  readonly lastLsn: number;
  /** Records replayed, including those of the snapshot. */
  readonly records: number;
  readonly warnings: readonly string[];
  /** By file: bytes that count although nothing proves that they were ever on disk. */
  readonly unproven: ReadonlyMap<string, { readonly from: number; readonly to: number }>;
}

/** Files opened beforehand, by name, so that a compaction in the meantime takes nothing away. */
export type Opened = ReadonlyMap<string, IoFile>;

/**
 * Replays the snapshot, then the segments after it. With `handlers.problems`, damage is noted and skipped; without it,
 * the first damage throws `journal-damaged`: before anything is replayed if the plan already shows it.
 */
export const walkJournal = async (
  io: JournalIo,
  dir: string,
  plan: Plan,
  handlers: WalkHandlers,
  opened?: Opened,
): Promise<Loaded> => {
  const { problems } = handlers;
  if (problems === undefined && plan.problems.length > 0) throw damaged(plan.problems[0]!);
  problems?.push(...plan.problems);
  const warnings = [...plan.warnings];
  let records = 0;
  const snapshotId = plan.snapshot?.upTo ?? plan.brokenSnapshot;
  let lastLsn = snapshotId?.lastLsn ?? 0;
  if (snapshotId !== undefined) {
    const file = opened?.get(snapshotName(snapshotId));
    records += await walkSnapshot(io, dir, snapshotId, lastLsn, handlers, file);
  }
  const chain: SegmentMark[] = [];
  const unproven = new Map<string, { from: number; to: number }>();
  let unsealed = plan.unlisted;
  for (const part of plan.parts) {
    if (part.missing) {
      lastLsn = Math.max(lastLsn, part.mark?.lastLsn ?? 0);
      continue;
    }
    const walked = await walkSegment(io, dir, part, lastLsn, handlers, opened?.get(segmentName(part.id)));
    if (walked.torn !== undefined && walked.torn.bytes > 0) {
      const { offset, bytes, detail } = walked.torn;
      warnings.push(`${segmentName(part.id)}: cut a torn tail of ${bytes} bytes at offset ${offset} (${detail})`);
    }
    // A chain is trusted to name its gaps (repair left them); where the chain could not be read, the LSNs show them.
    if (unsealed && walked.firstLsn > lastLsn + 1) {
      problems?.push({
        segment: segmentName(part.id),
        offset: 0,
        detail: `records ${lastLsn + 1} to ${walked.firstLsn - 1}, before this segment, are missing`,
        lostRecords: walked.firstLsn - lastLsn - 1,
      });
    }
    unsealed = part.mark === undefined;
    if (unsealed && walked.proven < walked.length)
      unproven.set(segmentName(part.id), { from: walked.proven, to: walked.length });
    records += walked.records;
    lastLsn = Math.max(lastLsn, walked.lastLsn);
    const { epoch, number } = part.id;
    chain.push({ epoch, number, length: walked.length, firstLsn: walked.firstLsn, lastLsn: walked.lastLsn });
  }
  return { plan, base: plan.snapshot?.upTo, chain, lastLsn, records, warnings, unproven };
};

export const loadJournal = async (io: JournalIo, dir: string, replay: Replay): Promise<Loaded> =>
  walkJournal(io, dir, await planJournal(io, dir), { replay });

const ATTEMPTS = 10;

/** Opens every file that a plan names before reading any of them. Returns undefined if a compaction was faster. */
export const openAll = async (io: JournalIo, dir: string, plan: Plan): Promise<Map<string, IoFile> | undefined> => {
  const names = plan.parts.filter((part) => !part.missing).map((part) => segmentName(part.id));
  if (plan.snapshot !== undefined) names.push(plan.snapshot.name);
  const files = new Map<string, IoFile>();
  try {
    for (const name of names) files.set(name, await io.open(join(dir, name), "r"));
    return files;
  } catch (error) {
    await closeAll(files);
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
};

export const closeAll = async (files: Opened): Promise<void> => {
  for (const file of files.values()) await file.close();
};

/**
 * Reads a journal without touching it, even while a server writes it: then it stops quietly before whatever is
 * incomplete, and may include records that are not acknowledged yet.
 */
export const readJournal = async (
  dir: string,
  replay: Replay,
  io: JournalIo = nodeIo,
): Promise<{ records: number; lastLsn: number; warnings: readonly string[] }> => {
  for (let attempt = 1; ; attempt += 1) {
    let plan: Plan | undefined;
    let files: Map<string, IoFile> | undefined;
    try {
      plan = await planJournal(io, dir);
      files = await openAll(io, dir, plan);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
    }
    // What looks lost may have been compacted between two looks; a real loss still shows at the last attempt.
    if (plan !== undefined && files !== undefined && (plan.problems.length === 0 || attempt >= ATTEMPTS)) {
      try {
        const { records, lastLsn, warnings } = await walkJournal(io, dir, plan, { replay }, files);
        return { records, lastLsn, warnings };
      } finally {
        await closeAll(files);
      }
    }
    if (files !== undefined) await closeAll(files);
    if (attempt >= ATTEMPTS)
      throw new SlipwayError("internal", { detail: `${dir} changes faster than it can be read` });
  }
};

/** One entry per damaged place: both the plan and the walk may have seen it, and the walk knows more. */
export const distinctProblems = (problems: readonly Problem[]): Problem[] => [
  ...new Map(problems.map((problem) => [`${problem.segment}:${problem.offset}`, problem])).values(),
];
