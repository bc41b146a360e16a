/** The journal: an append-only log of records, which reports them only when they are durable. It knows no event types. */
export { type JournalIo, type IoFile, nodeIo } from "./io.ts";
export {
  type Journal,
  type JournalOptions,
  type JournalState,
  type JournalStateDetail,
  openJournal,
} from "./journal.ts";
export { type SegmentId, type SegmentMark, highestEpoch } from "./names.ts";
export type { Problem } from "./plan.ts";
export { type History, type Way, openHistory } from "./history.ts";
export { RESERVE_BYTES, type Reserve, openReserve, reserveFile } from "./reserve.ts";
export { readJournal } from "./read.ts";
export { type SnapshotInfo, type SnapshotRecord, writeSnapshot } from "./snapshot.ts";
export { type JournalInfo, type Verdict, inspectJournal, verifyJournal } from "./inspect.ts";
export { type Repaired, type SetAside, repairJournal } from "./repair.ts";
export type { Replay } from "./walk.ts";
