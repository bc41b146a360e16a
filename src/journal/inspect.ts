import { join } from "node:path";
import { FORMAT_VERSION } from "./format.ts";
import { type JournalIo, nodeIo } from "./io.ts";
import { type SegmentId, sameId, segmentName } from "./names.ts";
import { type Problem, planJournal } from "./plan.ts";
import { distinctProblems, walkJournal } from "./read.ts";
import type { SnapshotInfo } from "./snapshot.ts";
import type { Refused, Replay } from "./walk.ts";

export interface SegmentInfo {
  readonly name: string;
  readonly epoch: number;
  readonly number: number;
  /** Bytes in the file. */
  readonly size: number;
  /** Bytes that count. */
  readonly length: number;
  readonly firstLsn: number;
  readonly lastLsn: number;
  /** `ignored`: covered by the snapshot, or written by a server that had been replaced. */
  readonly use: "replayed" | "ignored";
}

export interface JournalInfo {
  readonly format: number;
  readonly segments: readonly SegmentInfo[];
  readonly snapshot: SnapshotInfo | undefined;
  /** Records that a start replays, including those of the snapshot. */
  readonly records: number;
  readonly lastLsn: number;
  readonly epochs: readonly number[];
  readonly bytes: number;
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

export interface Verdict {
  readonly ok: boolean;
  readonly records: number;
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

export interface InspectOptions {
  readonly io?: JournalIo;
  /** Looks at each record; a record it throws at is a problem too. */
  readonly replay?: Replay;
}

/** Reads the whole journal, changing nothing, and reports everything about it. */
export const inspectJournal = async (
  dir: string,
  { io = nodeIo, replay = () => undefined }: InspectOptions = {},
): Promise<JournalInfo> => {
  const plan = await planJournal(io, dir);
  const problems: Problem[] = [];
  const refused: Refused[] = [];
  const loaded = await walkJournal(io, dir, plan, { replay, problems, refused });
  for (const { segment, offset, lsn, detail } of refused)
    problems.push({ segment, offset, detail: `record ${lsn} cannot be applied: ${detail}`, lostRecords: 0 });
  const segments: SegmentInfo[] = [];
  for (const id of plan.segments) {
    const mark = loaded.chain.find((one) => sameId(one, id));
    segments.push({
      name: segmentName(id),
      epoch: id.epoch,
      number: id.number,
      size: await io.size(join(dir, segmentName(id))),
      length: mark?.length ?? 0,
      firstLsn: mark?.firstLsn ?? 0,
      lastLsn: mark?.lastLsn ?? 0,
      use: mark === undefined ? "ignored" : "replayed",
    });
  }
  const epochs = [...new Set(plan.segments.map((id: SegmentId) => id.epoch))];
  return {
    format: FORMAT_VERSION,
    segments,
    snapshot: plan.snapshot,
    records: loaded.records,
    lastLsn: loaded.lastLsn,
    epochs,
    bytes: segments.reduce((sum, segment) => sum + segment.size, plan.snapshot?.bytes ?? 0),
    problems: distinctProblems(problems),
    warnings: loaded.warnings,
  };
};

/** A torn tail is not a problem: its records were never acknowledged. */
export const verifyJournal = async (dir: string, options?: InspectOptions): Promise<Verdict> => {
  const { records, problems, warnings } = await inspectJournal(dir, options);
  return { ok: problems.length === 0, records, problems, warnings };
};
