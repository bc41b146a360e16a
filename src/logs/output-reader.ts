import { open, type FileHandle } from "node:fs/promises";
import { SlipwayError } from "../errors.ts";
import {
  CHUNK_HEADER_BYTES,
  decodeChunkHeader,
  NO_CHUNK,
  type ChunkHeader,
  type OutputFd,
} from "../core/output-format.ts";

export interface ReadOutputOptions {
  /** Whose bytes: stdout, stderr, or both as they came. */
  readonly fd: OutputFd | "both";
  /** Only this many bytes, from the end. */
  readonly tailBytes?: number;
  /** Only chunks after this one, of the same attempt: the `lastAt` up to which a follower has read. */
  readonly since?: number;
}

/** Small neighbouring chunks cost one read, both backward and forward. */
const PAGE_BYTES = 4096;
const STRETCH_BYTES = 256 * 1024;
/** How far back a tail is looked for: what one stream wrote may lie behind gigabytes of the other. */
const TAIL_CHUNKS = 4096;

const damaged = (path: string, offset: number, detail: string): SlipwayError =>
  new SlipwayError("output-damaged", { path, offset, detail });

/** Bytes of the file from an offset; fewer at its end. */
const readAt = async (handle: FileHandle, at: number, length: number): Promise<Buffer> => {
  const bytes = Buffer.allocUnsafeSlow(length);
  const { bytesRead } = await handle.read(bytes, 0, length, at);
  return bytes.subarray(0, bytesRead);
};

/** Chunks to read, first to last; two numbers each, so that a chain of a million takes 16 MB. */
interface Chain {
  readonly offsets: number[];
  readonly lengths: number[];
  readonly bytes: number;
}

const walkBack = async (
  path: string,
  handle: FileHandle,
  lastAt: number,
  options: ReadOutputOptions,
): Promise<Chain> => {
  const { fd, tailBytes = Infinity, since = NO_CHUNK } = options;
  let page: Buffer = Buffer.alloc(0);
  let pageAt = 0;
  const offsets: number[] = [];
  const lengths: number[] = [];
  let bytes = 0;
  let last: ChunkHeader | undefined;
  const most = tailBytes === Infinity ? Infinity : TAIL_CHUNKS;
  for (let at = lastAt, chunks = 0; at > since && bytes < tailBytes && chunks < most; chunks += 1) {
    if (at < pageAt || at + CHUNK_HEADER_BYTES > pageAt + page.length) {
      // Include up to a page before the header: the next one may be there.
      pageAt = Math.max(0, at + CHUNK_HEADER_BYTES - PAGE_BYTES);
      page = await readAt(handle, pageAt, PAGE_BYTES);
    }
    const header = decodeChunkHeader(page, at - pageAt);
    if (typeof header === "string") throw damaged(path, at, header);
    last ??= header;
    if (header.run !== last.run || header.row !== last.row || header.attempt !== last.attempt) {
      throw damaged(path, at, `a chunk of task ${header.run}, row ${header.row} in the chain of row ${last.row}`);
    }
    if (header.prev >= at) throw damaged(path, at, `the chunk before is said to be at ${header.prev}`);
    if (fd === "both" || header.fd === fd) {
      offsets.push(at + CHUNK_HEADER_BYTES);
      lengths.push(header.length);
      bytes += header.length;
    }
    at = header.prev;
  }
  return { offsets: offsets.toReversed(), lengths: lengths.toReversed(), bytes };
};

/** The chunks from `nth` up to the returned position (exclusive) are close enough together for one read. */
const stretchEnd = (offsets: readonly number[], lengths: readonly number[], nth: number): number => {
  let behind = nth + 1;
  for (; behind < offsets.length; behind++) {
    const gap = offsets[behind]! - offsets[behind - 1]! - lengths[behind - 1]!;
    if (gap > PAGE_BYTES || offsets[behind]! + lengths[behind]! - offsets[nth]! > STRETCH_BYTES) break;
  }
  return behind;
};

/**
 * The output of one attempt, found from the offset of its last chunk (-1: none). Memory is bounded by the number of
 * chunks, not by the bytes. A missing or damaged chunk is an error that names the file and the offset.
 */
export async function* readOutput(path: string, lastAt: number, options: ReadOutputOptions): AsyncGenerator<Buffer> {
  if (lastAt < 0) return;
  if (!Number.isSafeInteger(lastAt)) throw damaged(path, lastAt, "no place in a file");
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    throw new SlipwayError("output-damaged", { path, offset: lastAt, detail: (error as Error).message }, error);
  }
  try {
    const { offsets, lengths, bytes } = await walkBack(path, handle, lastAt, options);
    let surplus = Math.max(0, bytes - (options.tailBytes ?? Infinity));
    for (let nth = 0; nth < offsets.length;) {
      const start = offsets[nth]!;
      const behind = stretchEnd(offsets, lengths, nth);
      const stretch = await readAt(handle, start, offsets[behind - 1]! + lengths[behind - 1]! - start);
      for (; nth < behind; nth++) {
        const at = offsets[nth]! - start;
        const payload = stretch.subarray(at, at + lengths[nth]!);
        if (payload.length < lengths[nth]!) {
          throw damaged(path, offsets[nth]! - CHUNK_HEADER_BYTES, "the file ends inside the chunk");
        }
        const kept = payload.subarray(Math.min(surplus, payload.length));
        surplus -= payload.length - kept.length;
        if (kept.length > 0) yield kept;
      }
    }
  } finally {
    await handle.close();
  }
}

/** The last bytes of an attempt's output, for people: at most `maxBytes`. */
export const readTail = async (
  path: string,
  lastAt: number,
  fd: OutputFd | "both",
  maxBytes: number,
): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of readOutput(path, lastAt, { fd, tailBytes: maxBytes })) parts.push(part);
  return Buffer.concat(parts);
};
