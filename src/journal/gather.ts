import { crc32 } from "node:zlib";
import { SlipwayError } from "../errors.ts";
import { FRAME_BYTES, MAX_RECORD, writeFrame } from "./format.ts";

/** Records that share one fsync. `chunks` holds them framed, none across two, and not tied to a position yet. */
export interface Batch {
  readonly chunks: readonly Buffer[];
  readonly bytes: number;
  readonly count: number;
  readonly lastLsn: number;
}

const CHUNK = 256 * 1024;
/** How many chunks are kept for the next batch: an idle journal holds 2 MB at most. */
const KEPT = 8;

export interface Gatherer {
  add(type: number, payload: Uint8Array | readonly Uint8Array[]): number;
  take(): Batch;
  /** Gives back the memory of a batch that is on disk. */
  recycle(batch: Batch): void;
  readonly bytes: number;
  readonly count: number;
  readonly lastLsn: number;
}

/** Gathers records in memory. Payloads are copied: the caller may reuse its buffers at once. */
export const createGatherer = (lastLsn: number): Gatherer => {
  let lsn = lastLsn;
  let full: Buffer[] = [];
  let chunk: Buffer | undefined;
  let used = 0;
  let bytes = 0;
  let count = 0;
  const free: Buffer[] = [];

  const room = (size: number): Buffer => {
    if (chunk !== undefined && chunk.length - used >= size) return chunk;
    if (chunk !== undefined) full.push(chunk.subarray(0, used));
    used = 0;
    chunk = size <= CHUNK ? (free.pop() ?? Buffer.allocUnsafeSlow(CHUNK)) : Buffer.allocUnsafeSlow(size);
    return chunk;
  };

  const add = (type: number, payload: Uint8Array | readonly Uint8Array[]): number => {
    const single = payload instanceof Uint8Array;
    let length = 0;
    if (single) length = payload.length;
    else for (const part of payload) length += part.length;
    if (length > MAX_RECORD) {
      throw new SlipwayError("too-large", {
        what: "a journal record",
        size: `${length} bytes`,
        limit: `${MAX_RECORD} bytes`,
      });
    }
    const size = FRAME_BYTES + length;
    const into = room(size);
    const start = used;
    let at = start + FRAME_BYTES;
    let crc = 0;
    if (single) {
      into.set(payload, at);
      crc = crc32(payload);
    } else {
      for (const part of payload) {
        into.set(part, at);
        crc = crc32(part, crc);
        at += part.length;
      }
    }
    writeFrame(into, start, type, length, crc);
    used = start + size;
    bytes += size;
    count += 1;
    lsn += 1;
    return lsn;
  };

  const take = (): Batch => {
    if (chunk !== undefined && used > 0) {
      full.push(chunk.subarray(0, used));
      chunk = undefined;
      used = 0;
    }
    const batch = { chunks: full, bytes, count, lastLsn: lsn };
    full = [];
    bytes = 0;
    count = 0;
    return batch;
  };

  return {
    add,
    take,
    recycle: (batch) => {
      for (const used of batch.chunks) {
        if (free.length >= KEPT) return;
        if (used.buffer.byteLength === CHUNK) free.push(Buffer.from(used.buffer));
      }
    },
    get bytes() {
      return bytes;
    },
    get count() {
      return count;
    },
    get lastLsn() {
      return lsn;
    },
  };
};
