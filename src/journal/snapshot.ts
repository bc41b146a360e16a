import { join } from "node:path";
import { crc32 } from "node:zlib";
import {
  FIRST_INTERNAL_TYPE,
  FRAME_BYTES,
  HEADER_BYTES,
  MAX_RECORD,
  TRAILER_BYTES,
  TYPE_SNAP,
  TYPE_TRAILER,
  decodeHeader,
  decodeTrailer,
  encodeHeader,
  encodeRecord,
  encodeTrailer,
  saltOf,
  stamp,
  writeFrame,
} from "./format.ts";
import { type JournalIo, nodeIo, readAt, writeAll } from "./io.ts";
import { type SegmentId, type SegmentMark, snapshotName } from "./names.ts";
import { type ScanSource, readRecord } from "./scan.ts";
import { decodeObject, encodeMark, markOf } from "./start.ts";

export interface SnapshotRecord {
  readonly type: number;
  readonly payload: Uint8Array;
}

/** A whole snapshot on disk: the state after the record `upTo.lastLsn`. */
export interface SnapshotInfo {
  readonly name: string;
  readonly upTo: SegmentMark;
  readonly records: number;
  readonly bytes: number;
}

export interface SnapshotTarget {
  readonly dir: string;
  readonly upTo: SegmentMark;
  readonly io?: JournalIo;
}

/** How much is encoded between two turns of the event loop: about a millisecond of work. */
const CHUNK = 512 * 1024;

const isAsync = (records: object): records is AsyncIterable<SnapshotRecord> => Symbol.asyncIterator in records;

/**
 * Writes a snapshot beside the segments it covers. It takes effect only whole: under a temporary name, with a trailer,
 * fsync, rename, fsync of the directory. It never holds more than one chunk in memory, and gives the event loop a turn
 * after each.
 */
export const writeSnapshot = async (
  { dir, upTo, io = nodeIo }: SnapshotTarget,
  records: Iterable<SnapshotRecord> | AsyncIterable<SnapshotRecord>,
): Promise<SnapshotInfo> => {
  const name = snapshotName(upTo);
  const temporary = join(dir, `${name}.tmp`);
  const salt = saltOf("snapshot", upTo);
  const file = await io.open(temporary, "w");
  let offset = 0;
  let crc = 0;
  let count = 0;
  let chunk = Buffer.allocUnsafeSlow(CHUNK);
  let used = 0;

  const put = async (bytes: Buffer, place: boolean): Promise<void> => {
    if (place) stamp(bytes, salt, offset);
    crc = crc32(bytes, crc);
    await writeAll(file, [bytes], offset);
    offset += bytes.length;
  };
  const flush = async (): Promise<void> => {
    if (used === 0) return;
    await put(chunk.subarray(0, used), true);
    used = 0;
  };
  /** Returns a promise only when the chunk is full, so that a million records do not cost a million awaits. */
  const add = (record: SnapshotRecord): Promise<void> | undefined => {
    const { type, payload } = record;
    if (type >= FIRST_INTERNAL_TYPE || payload.length > MAX_RECORD) throw new RangeError(`bad snapshot record ${type}`);
    const size = FRAME_BYTES + payload.length;
    count += 1;
    if (size > chunk.length) return flush().then(() => put(encodeRecord(type, payload), true));
    if (size > chunk.length - used) return flush().then(() => place(type, payload));
    place(type, payload);
    return undefined;
  };
  const place = (type: number, payload: Uint8Array): void => {
    writeFrame(chunk, used, type, payload.length, crc32(payload));
    chunk.set(payload, used + FRAME_BYTES);
    used += FRAME_BYTES + payload.length;
  };

  try {
    await put(encodeHeader("snapshot", { ...upTo, firstLsn: upTo.lastLsn }), false);
    const about = { upTo: encodeMark(upTo), created: new Date().toISOString() };
    await put(encodeRecord(TYPE_SNAP, Buffer.from(JSON.stringify(about))), true);
    if (isAsync(records)) {
      for await (const record of records) await add(record);
    } else {
      for (const record of records) {
        const busy = add(record);
        if (busy !== undefined) await busy;
      }
    }
    await flush();
    await put(encodeTrailer({ count, offset, crc }), true);
    await file.datasync();
    await file.close();
    await io.rename(temporary, join(dir, name));
    await io.syncDir(dir);
  } catch (error) {
    await file.close().catch(() => undefined);
    await io.unlink(temporary).catch(() => undefined);
    throw error;
  }
  return { name, upTo, records: count, bytes: offset };
};

/** Reads a snapshot's two ends: is it whole, and what does it cover? Its middle is checked when it is replayed. */
export const inspectSnapshot = async (
  io: JournalIo,
  dir: string,
  id: SegmentId,
): Promise<SnapshotInfo | { readonly offset: number; readonly detail: string }> => {
  const name = snapshotName(id);
  const file = await io.open(join(dir, name), "r");
  try {
    const bytes = await file.size();
    const header = decodeHeader("snapshot", id, await readAt(file, 0, Math.min(bytes, HEADER_BYTES)));
    if (typeof header === "string") return { offset: 0, detail: header };
    const source: ScanSource = { file, salt: saltOf("snapshot", id) };
    const upTo = await readUpTo(source, id, bytes);
    if (typeof upTo === "string") return { offset: HEADER_BYTES, detail: upTo };
    const end = bytes - TRAILER_BYTES;
    const last = end < HEADER_BYTES ? "cut short" : await readRecord(source, end, bytes);
    if (typeof last === "string" || last.type !== TYPE_TRAILER || last.end !== bytes) {
      return { offset: Math.max(end, 0), detail: "the snapshot has no valid trailer" };
    }
    const trailer = decodeTrailer(last.payload);
    if (trailer.offset !== end) return { offset: end, detail: `the trailer belongs at ${trailer.offset}` };
    return { name, upTo, records: trailer.count, bytes };
  } finally {
    await file.close();
  }
};

const readUpTo = async (source: ScanSource, id: SegmentId, size: number): Promise<SegmentMark | string> => {
  const record = await readRecord(source, HEADER_BYTES, size);
  if (typeof record === "string") return `the first record: ${record}`;
  if (record.type !== TYPE_SNAP) return "the first record is not a SNAP";
  const upTo = markOf(decodeObject(record.payload)?.["upTo"]);
  if (upTo === undefined || upTo.epoch !== id.epoch || upTo.number !== id.number)
    return "the SNAP record is not understood";
  return upTo;
};
