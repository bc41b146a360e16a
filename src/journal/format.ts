/**
 * The bytes of a segment or a snapshot.
 *
 *   file    = header record*
 *   header  = magic[8] version:u16 flags:u16 epoch:u32 number:u32 firstLsn:u64 zero[8] crc:u32          (40 bytes)
 *   record  = length:u32 crc:u32 check:u16 type:u8 payload[length]                                      (little endian)
 *
 * `crc` is the CRC-32 of the payload, mixed with a hash of the file's identity and of the record's offset, length and
 * type; `check` is that hash alone. So bytes from another place or another file never validate, and a header can be
 * trusted before its payload has been read (which makes searching for the next record cheap).
 *
 * Types from 0xf0 are the journal's own:
 *   START   first record of a segment: the chain of segments before it and how much of each counts (JSON)
 *   COMMIT  everything before it is on disk; carries the next record's LSN. A bad record followed by a COMMIT is damage;
 *           without one it was never acknowledged, so it is a torn tail
 *   GAP     a COMMIT written by repair: LSNs were lost here
 *   END     a clean close; carries the LSN that would come next
 *   SNAP, TRAILER   first and last record of a snapshot
 */
import { crc32 } from "node:zlib";
import { SlipwayError } from "../errors.ts";
import { type SegmentId, baseName } from "./names.ts";

/**
 * The set of events and snapshot records is part of the format: an older Slipway must not read what it would not
 * understand. This one reads all formats up to its own.
 *   2   losses say whether the task was given up (`givenUp`, `losses.judged`); snapshots hold the links between runs
 *   3   results say how much memory attempts had (`peak`) and which get more (`grown`);
 *       requests are learned (`run.requests`); snapshots hold all three
 *   4   tasks may be handed ahead (`ahead` of `tasks.assigned`): an agent may have one that waits for another
 *   5   snapshots hold what attempts used beside memory, and where their ranks were;
 *       tasks may wait for others item by item (`items` of a dependency); items may be a product, or have columns
 *   6   tasks may be skipped for their outputs (`tasks.skipped`, `inputs.seen`); snapshots hold what outputs came from
 */
export const FORMAT_VERSION = 6;
export const HEADER_BYTES = 40;
export const FRAME_BYTES = 11;
export const MAX_RECORD = 256 * 1024 * 1024;

export const TYPE_START = 0xf0;
export const TYPE_COMMIT = 0xf1;
export const TYPE_GAP = 0xf2;
export const TYPE_END = 0xf3;
export const TYPE_SNAP = 0xf4;
export const TYPE_TRAILER = 0xf5;
export const FIRST_INTERNAL_TYPE = 0xf0;

export const MARKER_PAYLOAD = 8;
export const TRAILER_PAYLOAD = 20;
export const TRAILER_BYTES = FRAME_BYTES + TRAILER_PAYLOAD;

export type FileKind = "segment" | "snapshot";
const MAGIC: Record<FileKind, string> = { segment: "SLIPWAYJ", snapshot: "SLIPWAYS" };

export interface FileHeader extends SegmentId {
  readonly firstLsn: number;
}

export const encodeHeader = (kind: FileKind, header: FileHeader): Buffer => {
  const buffer = Buffer.alloc(HEADER_BYTES);
  buffer.write(MAGIC[kind], 0, "latin1");
  buffer.writeUInt16LE(FORMAT_VERSION, 8);
  buffer.writeUInt32LE(header.epoch, 12);
  buffer.writeUInt32LE(header.number, 16);
  buffer.writeBigUInt64LE(BigInt(header.firstLsn), 20);
  buffer.writeUInt32LE(crc32(buffer.subarray(0, HEADER_BYTES - 4)), HEADER_BYTES - 4);
  return buffer;
};

/**
 * Returns the header, or says in words what is wrong with it. Throws `journal-version` for an intact header of a newer
 * format: such a journal is not damaged, and we must not repair it.
 */
export const decodeHeader = (kind: FileKind, id: SegmentId, buffer: Buffer): FileHeader | string => {
  if (buffer.length < HEADER_BYTES) return `the file header is cut short (${buffer.length} of ${HEADER_BYTES} bytes)`;
  if (buffer.toString("latin1", 0, 8) !== MAGIC[kind]) return "the file header has the wrong magic";
  if (crc32(buffer.subarray(0, HEADER_BYTES - 4)) !== buffer.readUInt32LE(HEADER_BYTES - 4)) {
    return "the checksum of the file header is wrong";
  }
  const version = buffer.readUInt16LE(8);
  if (version > FORMAT_VERSION) throw new SlipwayError("journal-version", { found: version, known: FORMAT_VERSION });
  const header = {
    epoch: buffer.readUInt32LE(12),
    number: buffer.readUInt32LE(16),
    firstLsn: Number(buffer.readBigUInt64LE(20)),
  };
  if (header.epoch !== id.epoch || header.number !== id.number) {
    return `the file header belongs to ${baseName(header)}`;
  }
  return header;
};

/** What ties a record to its file. */
export const saltOf = (kind: FileKind, id: SegmentId): number => crc32(`${MAGIC[kind]}/${baseName(id)}`) | 0;

/** A hash of a record's position and of what its frame says. */
export const mix = (salt: number, offset: number, length: number, type: number): number => {
  let hash = Math.imul(salt ^ (offset | 0), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13) ^ length, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16) ^ type ^ (Math.floor(offset / 0x1_0000_0000) << 8), 0x27d4eb2f);
  return (hash ^ (hash >>> 15)) >>> 0;
};

export const checkOf = (hash: number): number => (hash ^ (hash >>> 16)) & 0xffff;

/** Writes a frame that does not have its position yet: `stamp` adds it. */
export const writeFrame = (buffer: Buffer, at: number, type: number, length: number, crc: number): void => {
  buffer.writeUInt32LE(length, at);
  buffer.writeUInt32LE(crc, at + 4);
  buffer.writeUInt16LE(0, at + 8);
  buffer[at + 10] = type;
};

/**
 * Ties all records in `buffer`, which begins at `offset` of the file, to their position. A second call undoes it, so
 * that records can be written to another segment when the first one failed.
 */
export const stamp = (buffer: Buffer, salt: number, offset: number): void => {
  let at = 0;
  while (at < buffer.length) {
    const length = buffer.readUInt32LE(at);
    const hash = mix(salt, offset + at, length, buffer[at + 10]!);
    buffer.writeUInt32LE((buffer.readUInt32LE(at + 4) ^ hash) >>> 0, at + 4);
    buffer.writeUInt16LE(checkOf(hash), at + 8);
    at += FRAME_BYTES + length;
  }
};

/** A single record, not tied to a position yet. */
export const encodeRecord = (type: number, payload: Uint8Array): Buffer => {
  const buffer = Buffer.allocUnsafe(FRAME_BYTES + payload.length);
  writeFrame(buffer, 0, type, payload.length, crc32(payload));
  buffer.set(payload, FRAME_BYTES);
  return buffer;
};

export const encodeMarker = (type: number, nextLsn: number): Buffer => {
  const payload = Buffer.alloc(MARKER_PAYLOAD);
  payload.writeBigUInt64LE(BigInt(nextLsn));
  return encodeRecord(type, payload);
};

export const decodeMarker = (payload: Buffer): number => Number(payload.readBigUInt64LE(0));

export interface Trailer {
  /** How many of the records are the caller's. */
  readonly count: number;
  /** Where the trailer is. */
  readonly offset: number;
  /** CRC-32 of all bytes before the trailer. */
  readonly crc: number;
}

export const encodeTrailer = (trailer: Trailer): Buffer => {
  const payload = Buffer.alloc(TRAILER_PAYLOAD);
  payload.writeBigUInt64LE(BigInt(trailer.count), 0);
  payload.writeBigUInt64LE(BigInt(trailer.offset), 8);
  payload.writeUInt32LE(trailer.crc, 16);
  return encodeRecord(TYPE_TRAILER, payload);
};

export const decodeTrailer = (payload: Buffer): Trailer => ({
  count: Number(payload.readBigUInt64LE(0)),
  offset: Number(payload.readBigUInt64LE(8)),
  crc: payload.readUInt32LE(16),
});
