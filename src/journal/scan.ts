import { crc32 } from "node:zlib";
import { FRAME_BYTES, MARKER_PAYLOAD, MAX_RECORD, TYPE_COMMIT, TYPE_END, TYPE_GAP, checkOf, mix } from "./format.ts";
import { type IoFile, readAt } from "./io.ts";

/** How much is read at a time; a larger record is read alone. Files are never held whole. */
const CHUNK = 2 * 1024 * 1024;

/** The most that a search for the next record may checksum; beyond it the rest of a file counts as unreadable. */
const SEARCH_BUDGET = 1024 * 1024 * 1024;

export interface ScanSource {
  readonly file: IoFile;
  readonly salt: number;
}

export interface ScanEnd {
  /** Everything before it is valid. */
  readonly offset: number;
  /** What is wrong at `offset`; absent when the limit was reached exactly. */
  readonly detail?: string;
}

/** The payload stays valid after the call, but keeps a whole chunk in memory for as long as it is held. */
export type OnRecord = (type: number, payload: Buffer, offset: number) => void;

/**
 * Reads valid records from `from` to `limit`, in order, and stops at the first invalid one. `onBytes` sees every byte
 * of the valid records once, in order.
 */
export const scanRecords = async (
  { file, salt }: ScanSource,
  from: number,
  limit: number,
  onRecord: OnRecord,
  onBytes?: (bytes: Buffer) => void,
): Promise<ScanEnd> => {
  let position = from;
  let need = FRAME_BYTES;
  while (position < limit) {
    if (need > limit - position) return { offset: position, detail: "the record is cut short" };
    const asked = Math.min(Math.max(CHUNK, need), limit - position);
    const chunk = await readAt(file, position, asked);
    let at = 0;
    let bad: string | undefined;
    need = FRAME_BYTES;
    while (chunk.length - at >= FRAME_BYTES) {
      const length = chunk.readUInt32LE(at);
      const type = chunk[at + 10]!;
      const hash = mix(salt, position + at, length, type);
      if (length > MAX_RECORD || chunk.readUInt16LE(at + 8) !== checkOf(hash)) {
        bad = "not a record";
        break;
      }
      const end = at + FRAME_BYTES + length;
      if (end > chunk.length) {
        need = end - at;
        break;
      }
      const payload = chunk.subarray(at + FRAME_BYTES, end);
      if ((crc32(payload) ^ hash) >>> 0 !== chunk.readUInt32LE(at + 4)) {
        bad = "the checksum of the record is wrong";
        break;
      }
      onRecord(type, payload, position + at);
      at = end;
    }
    onBytes?.(chunk.subarray(0, at));
    position += at;
    if (bad !== undefined) return { offset: position, detail: bad };
    if (chunk.length < asked && position < limit) {
      return { offset: position, detail: `the file ends at ${position - at + chunk.length}, ${limit} expected` };
    }
  }
  return { offset: position };
};

/** The one record at `offset`, or what is wrong with it. */
export const readRecord = async (
  { file, salt }: ScanSource,
  offset: number,
  limit: number,
): Promise<{ type: number; payload: Buffer; end: number } | string> => {
  if (limit - offset < FRAME_BYTES) return "the record is cut short";
  const frame = await readAt(file, offset, FRAME_BYTES);
  if (frame.length < FRAME_BYTES) return "the record is cut short";
  const length = frame.readUInt32LE(0);
  const type = frame[10]!;
  const hash = mix(salt, offset, length, type);
  if (length > MAX_RECORD || frame.readUInt16LE(8) !== checkOf(hash)) return "not a record";
  const end = offset + FRAME_BYTES + length;
  if (end > limit) return "the record is cut short";
  const payload = await readAt(file, offset + FRAME_BYTES, length);
  if (payload.length < length) return "the record is cut short";
  if ((crc32(payload) ^ hash) >>> 0 !== frame.readUInt32LE(4)) return "the checksum of the record is wrong";
  return { type, payload, end };
};

const any = (): boolean => true;
const isMarker = (type: number, length: number): boolean =>
  (type === TYPE_COMMIT || type === TYPE_GAP || type === TYPE_END) && length === MARKER_PAYLOAD;

/** The offset of the first valid record at or after `from` that `accept` takes, at any alignment. */
const search = async (
  { file, salt }: ScanSource,
  from: number,
  limit: number,
  accept: (type: number, length: number) => boolean,
): Promise<number | undefined> => {
  let budget = SEARCH_BUDGET;
  let base = from;
  while (limit - base >= FRAME_BYTES) {
    const chunk = await readAt(file, base, Math.min(CHUNK, limit - base));
    const last = chunk.length - FRAME_BYTES;
    for (let at = 0; at <= last; at += 1) {
      if (chunk[at + 3]! > MAX_RECORD >>> 24) continue;
      const length = chunk.readUInt32LE(at);
      const type = chunk[at + 10]!;
      const end = base + at + FRAME_BYTES + length;
      if (end > limit || length > MAX_RECORD || !accept(type, length)) continue;
      const hash = mix(salt, base + at, length, type);
      if (chunk.readUInt16LE(at + 8) !== checkOf(hash)) continue;
      budget -= length;
      if (budget < 0) return undefined;
      const inside = at + FRAME_BYTES + length <= chunk.length;
      const payload = inside
        ? chunk.subarray(at + FRAME_BYTES, at + FRAME_BYTES + length)
        : await readAt(file, base + at + FRAME_BYTES, length);
      if (payload.length === length && (crc32(payload) ^ hash) >>> 0 === chunk.readUInt32LE(at + 4)) return base + at;
    }
    if (last < 0) return undefined;
    base += last + 1;
  }
  return undefined;
};

/** Where reading can continue after damage. */
export const findRecord = (source: ScanSource, from: number, limit: number): Promise<number | undefined> =>
  search(source, from, limit, any);

/** Whether something at or after `from` proves that everything before it was once on disk. */
export const hasMarker = async (source: ScanSource, from: number, limit: number): Promise<boolean> =>
  (await search(source, from, limit, isMarker)) !== undefined;

/** Whether nothing was ever written there but the zeros that a segment prepares. */
export const isBlank = async (file: IoFile, from: number, limit: number): Promise<boolean> => {
  for (let at = from; at < limit;) {
    const chunk = await readAt(file, at, Math.min(CHUNK, limit - at));
    if (chunk.length === 0) return true;
    if (chunk.some((byte) => byte !== 0)) return false;
    at += chunk.length;
  }
  return true;
};
