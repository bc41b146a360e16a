import type { Row, RunId } from "./ids.ts";
/**
 * Output streams: one append-only file per agent holds the output of all its tasks, in chunks. The chunks of one
 * attempt form a chain from the last to the first, so an attempt's output is found from one offset and no index is
 * written.
 *
 *   chunk = header (32 bytes, little endian) + `length` bytes
 *   0 magic u32 │ 4 length u32 │ 8 prev f64 │ 16 run u32 │ 20 row u32 │ 24 attempt u16 │ 26 fd u8 │ 27 flags u8 │ 28 crc u32
 *
 * `prev` is the offset of the header of the same attempt's previous chunk, -1 for none. The crc covers the 28 bytes
 * before it. Flags: 1 for a marker, see MARKER. The last digit of the magic is the version of the format.
 */

export const CHUNK_HEADER_BYTES = 32;
export const CHUNK_MAX_BYTES = 65_536;
/** What `prev` and `lastAt` say when there is no chunk. */
export const NO_CHUNK = -1;

/** In flags: the payload is not the task's, but a line for people that says how much is missing here. */
export const MARKER = 1;

/** "SLO1" */
const MAGIC = 0x314f4c53;

export type OutputFd = 1 | 2;

export interface ChunkHeader {
  readonly run: RunId;
  readonly row: Row;
  /** Modulo 65536. */
  readonly attempt: number;
  readonly fd: OutputFd;
  readonly flags: number;
  readonly length: number;
  readonly prev: number;
}

const CRC_TABLE = new Uint32Array(256).map((_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

const crc32 = (bytes: Uint8Array, from: number, to: number): number => {
  let crc = 0xffffffff;
  for (let at = from; at < to; at++) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ bytes[at]!) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
};

/** Writes a header at an offset of a buffer. */
export const encodeChunkHeader = (target: Buffer, at: number, header: ChunkHeader): void => {
  target.writeUInt32LE(MAGIC, at);
  target.writeUInt32LE(header.length, at + 4);
  target.writeDoubleLE(header.prev, at + 8);
  target.writeUInt32LE(header.run, at + 16);
  target.writeUInt32LE(header.row, at + 20);
  target.writeUInt16LE(header.attempt & 0xffff, at + 24);
  target[at + 26] = header.fd;
  target[at + 27] = header.flags;
  target.writeUInt32LE(crc32(target, at, at + 28), at + 28);
};

/** Reads the header at an offset of a buffer; a text instead says what is wrong with it. */
export const decodeChunkHeader = (source: Buffer, at = 0): ChunkHeader | string => {
  if (source.length - at < CHUNK_HEADER_BYTES) return "the file ends inside a header";
  if (source.readUInt32LE(at) !== MAGIC) return "no chunk starts here";
  if (source.readUInt32LE(at + 28) !== crc32(source, at, at + 28)) return "the header's checksum does not match";
  const length = source.readUInt32LE(at + 4);
  const prev = source.readDoubleLE(at + 8);
  const fd = source[at + 26]!;
  if (length > CHUNK_MAX_BYTES) return `a chunk of ${length} bytes`;
  if (!Number.isSafeInteger(prev) || prev < NO_CHUNK) return `a previous chunk at ${prev}`;
  if (fd !== 1 && fd !== 2) return `a chunk of file descriptor ${fd}`;
  return {
    run: source.readUInt32LE(at + 16),
    row: source.readUInt32LE(at + 20),
    attempt: source.readUInt16LE(at + 24),
    fd,
    flags: source[at + 27]!,
    length,
    prev,
  };
};
