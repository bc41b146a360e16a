import { join } from "node:path";
import { HEADER_BYTES, TYPE_GAP, TYPE_START, encodeHeader, encodeRecord, saltOf, stamp } from "./format.ts";
import { createGatherer } from "./gather.ts";
import { type JournalIo, nodeIo, writeAll } from "./io.ts";
import { type SegmentId, type SegmentMark, segmentName, snapshotName } from "./names.ts";
import { type Part, type Problem, planJournal } from "./plan.ts";
import { distinctProblems, walkJournal } from "./read.ts";
import { createSegment } from "./segment.ts";
import { createSettler } from "./settle.ts";
import { type SnapshotRecord, writeSnapshot } from "./snapshot.ts";
import { encodeStart } from "./start.ts";
import { type Refused, type Replay, type Walked, walkSegment, walkSnapshot } from "./walk.ts";

export interface Repaired {
  readonly changed: boolean;
  /** Where the damaged files are now, with a report.json. */
  readonly movedTo: string | undefined;
  readonly problems: readonly Problem[];
  /** Intact events that could not be applied, each in a file of its own. */
  readonly setAside: readonly SetAside[];
  /** `exact` is false where nothing shows how many records the damage held. */
  readonly lost: { readonly records: number; readonly bytes: number; readonly exact: boolean };
  readonly kept: number;
}

export interface SetAside {
  readonly file: string;
  readonly segment: string;
  readonly offset: number;
  readonly record: number;
  readonly detail: string;
}

export interface RepairOptions {
  readonly io?: JournalIo;
  /** Applies a record as a start would; a record it throws at is set aside. */
  readonly replay?: Replay;
  /** A record in words, for the file it goes into when set aside. */
  readonly explain?: (type: number, payload: Buffer) => unknown;
}

const lsnPayload = (lsn: number): Buffer => {
  const payload = Buffer.alloc(8);
  payload.writeBigUInt64LE(BigInt(lsn));
  return payload;
};

const writeFile = async (io: JournalIo, path: string, buffers: readonly Buffer[]): Promise<void> => {
  const file = await io.open(path, "wx");
  try {
    await writeAll(file, buffers, 0);
    await file.datasync();
  } finally {
    await file.close();
  }
};

/** Copies what can be read of a segment into one that counts only where a START lists it. Holds all of it in memory. */
const salvageSegment = async (
  io: JournalIo,
  dir: string,
  part: Part,
  previousLsn: number,
  id: SegmentId,
  without: ReadonlySet<number>,
): Promise<Walked & { mark: SegmentMark }> => {
  const gatherer = createGatherer(0);
  const walked = await walkSegment(io, dir, part, previousLsn, {
    problems: [],
    replay: (type, payload, lsn) =>
      void (without.has(lsn) ? gatherer.add(TYPE_GAP, lsnPayload(lsn + 1)) : gatherer.add(type, payload)),
    gap: (nextLsn) => void gatherer.add(TYPE_GAP, lsnPayload(nextLsn)),
  });
  const { firstLsn, lastLsn } = walked;
  const start = { why: "salvage", firstLsn, chain: [], created: new Date().toISOString() } as const;
  const records = [encodeRecord(TYPE_START, encodeStart(start)), ...gatherer.take().chunks];
  let length = HEADER_BYTES;
  for (const chunk of records) {
    stamp(chunk, saltOf("segment", id), length);
    length += chunk.length;
  }
  await writeFile(io, join(dir, segmentName(id)), [encodeHeader("segment", { ...id, firstLsn }), ...records]);
  return { ...walked, mark: { ...id, length, firstLsn, lastLsn } };
};

/** Replaces a damaged snapshot with what can be read of it. Holds all of it in memory. */
const salvageSnapshot = async (
  io: JournalIo,
  dir: string,
  aside: string,
  upTo: SegmentMark,
  without: ReadonlySet<number>,
): Promise<void> => {
  const records: SnapshotRecord[] = [];
  let nth = 0;
  const replay = (type: number, payload: Buffer): void => {
    if (!without.has(nth++)) records.push({ type, payload });
  };
  await walkSnapshot(io, dir, upTo, upTo.lastLsn, { problems: [], replay });
  await io.copy(join(dir, snapshotName(upTo)), join(aside, snapshotName(upTo)));
  await writeSnapshot({ dir, upTo, io }, records);
};

const freeName = async (io: JournalIo, dir: string): Promise<string> => {
  const names = new Set(await io.readdir(dir));
  let n = 1;
  while (names.has(`damaged-${n}`)) n += 1;
  return `damaged-${n}`;
};

const setAside = async (
  io: JournalIo,
  aside: string,
  refused: readonly Refused[],
  explain: RepairOptions["explain"],
): Promise<SetAside[]> => {
  const files: SetAside[] = [];
  for (const { segment, offset, lsn, type, payload, detail } of refused) {
    const file = join(aside, `event-${lsn}-at-${offset}.json`);
    let event: unknown;
    try {
      event = explain?.(type, payload);
    } catch {
      // then the bytes below must speak for themselves
    }
    const about = { segment, offset, record: lsn, detail, type, event, payload: payload.toString("base64") };
    await writeFile(io, file, [Buffer.from(`${JSON.stringify(about, undefined, 2)}\n`)]);
    files.push({ file, segment, offset, record: lsn, detail });
  }
  return files;
};

/**
 * Makes a damaged journal usable, keeping every record that can be read before and after the damage, except those that
 * `replay` cannot apply: each of these goes into a file of its own. No server may use the journal meanwhile. The repair
 * takes effect at one moment, when the new segment that names the new chain exists; if interrupted before, it can be
 * run again. The damaged files are kept aside.
 */
export const repairJournal = async (dir: string, options: RepairOptions = {}): Promise<Repaired> => {
  const { io = nodeIo, replay = () => undefined } = options;
  const plan = await planJournal(io, dir);
  const found: Problem[] = [];
  const refused: Refused[] = [];
  /** Within a snapshot all records have the same LSN: their number tells them apart. */
  const inSnapshot = new Set<number>();
  const inSegments = new Set<number>();
  let nth = -1;
  const base = plan.snapshot?.upTo ?? plan.brokenSnapshot;
  const loaded = await walkJournal(io, dir, plan, {
    problems: found,
    refused,
    replay: (type, payload, lsn) => {
      const snapped = base !== undefined && lsn === base.lastLsn;
      if (snapped) nth += 1;
      try {
        replay(type, payload, lsn);
      } catch (error) {
        if (snapped) inSnapshot.add(nth);
        else inSegments.add(lsn);
        throw error;
      }
    },
  });
  const kept = loaded.records - refused.length;
  const problems = distinctProblems(found);
  const lost = {
    records: problems.reduce((sum, problem) => sum + (problem.lostRecords ?? 0), 0),
    bytes: problems.reduce((sum, problem) => sum + (problem.lostBytes ?? 0), 0),
    exact: problems.every((problem) => problem.lostRecords !== undefined),
  };
  if (problems.length === 0 && refused.length === 0)
    return { changed: false, movedTo: undefined, problems, setAside: [], lost, kept };

  const name = await freeName(io, dir);
  const aside = join(dir, name);
  await io.mkdir(aside);
  const events = await setAside(io, aside, refused, options.explain);
  const hurt = new Set([...problems, ...refused].map(({ segment }) => segment));
  if (base !== undefined && hurt.has(snapshotName(base))) await salvageSnapshot(io, dir, aside, base, inSnapshot);

  const epoch = Math.max(1, plan.highest.epoch);
  let number = plan.highest.number;
  let lastLsn = base?.lastLsn ?? 0;
  const chain: SegmentMark[] = [];
  const moved: string[] = [];
  for (const part of plan.parts) {
    if (part.missing) {
      lastLsn = Math.max(lastLsn, part.mark?.lastLsn ?? 0);
      continue;
    }
    if (hurt.has(segmentName(part.id)) || part.beforeLsn !== undefined) {
      number += 1;
      const { mark } = await salvageSegment(io, dir, part, lastLsn, { epoch, number }, inSegments);
      chain.push(mark);
      moved.push(segmentName(part.id));
    } else {
      const walked = await walkSegment(io, dir, part, lastLsn, { replay: () => undefined });
      const { length, firstLsn } = walked;
      chain.push({ epoch: part.id.epoch, number: part.id.number, length, firstLsn, lastLsn: walked.lastLsn });
    }
    lastLsn = Math.max(lastLsn, chain.at(-1)!.lastLsn);
  }
  await createSettler(io, dir, loaded)();
  const report = { created: new Date().toISOString(), problems, setAside: events, lost, kept, files: moved };
  await writeFile(io, join(aside, "report.json"), [Buffer.from(`${JSON.stringify(report, undefined, 2)}\n`)]);
  await io.syncDir(aside);
  await io.syncDir(dir);
  const start = { why: "repair", firstLsn: lastLsn + 1, base, chain, created: report.created } as const;
  const head = await createSegment(io, dir, { epoch, number: number + 1 }, start, 0);
  await head.close();
  for (const file of moved) await io.rename(join(dir, file), join(aside, file));
  await io.syncDir(aside);
  await io.syncDir(dir);
  return { changed: true, movedTo: aside, problems, setAside: events, lost, kept };
};
