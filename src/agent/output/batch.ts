import { CHUNK_HEADER_BYTES, CHUNK_MAX_BYTES, encodeChunkHeader, type ChunkHeader } from "../../core/output-format.ts";

const ARENA_BYTES = 4 * (CHUNK_HEADER_BYTES + CHUNK_MAX_BYTES);
/** Arenas kept for the next batches: 2 MB. */
const SPARE_ARENAS = 8;

/** A chunk, and what a marker stands for. */
export interface BatchChunk extends ChunkHeader {
  readonly missing?: number;
}

/** Chunks that are written together: copied into a few large buffers, so that one system call writes thousands. */
export interface OutputBatch<Ref> {
  /** File offset of the first byte. */
  readonly start: number;
  readonly bytes: number;
  /** Who has chunks here, in order, with the offset of each chunk's header. */
  readonly refs: readonly Ref[];
  readonly offsets: readonly number[];
  readonly chunks: readonly BatchChunk[];
  /** Resolves, never rejects, when the batch was written or given up. */
  readonly done: Promise<void>;
  /** Copies a chunk in and returns the file offset of its header. */
  add(ref: Ref, chunk: BatchChunk, payload: Buffer, from: number): number;
  buffers(): Buffer[];
  /** Settles `done` and frees the memory for reuse. */
  settle(): void;
}

/** Makes batches that share a small stock of memory. */
export const createBatches = <Ref>(): ((start: number) => OutputBatch<Ref>) => {
  const spare: Buffer[] = [];

  return (start) => {
    const arenas: Buffer[] = [];
    const used: number[] = [];
    const refs: Ref[] = [];
    const offsets: number[] = [];
    const chunks: BatchChunk[] = [];
    let bytes = 0;
    let resolve!: () => void;
    const done = new Promise<void>((settled) => (resolve = settled));

    return {
      start,
      get bytes() {
        return bytes;
      },
      refs,
      offsets,
      chunks,
      done,

      add(ref, chunk, payload, from) {
        const size = CHUNK_HEADER_BYTES + chunk.length;
        let last = arenas.length - 1;
        if (last < 0 || used[last]! + size > ARENA_BYTES) {
          arenas.push(spare.pop() ?? Buffer.allocUnsafeSlow(ARENA_BYTES));
          used.push(0);
          last++;
        }
        const arena = arenas[last]!;
        const at = used[last]!;
        encodeChunkHeader(arena, at, chunk);
        payload.copy(arena, at + CHUNK_HEADER_BYTES, from, from + chunk.length);
        used[last] = at + size;
        const offset = start + bytes;
        bytes += size;
        refs.push(ref);
        offsets.push(offset);
        chunks.push(chunk);
        return offset;
      },

      buffers: () => arenas.map((arena, nth) => arena.subarray(0, used[nth])),

      settle() {
        for (const arena of arenas) if (spare.length < SPARE_ARENAS) spare.push(arena);
        resolve();
      },
    };
  };
};

/** What is left of these buffers after the first `count` bytes. */
export const skip = (buffers: Buffer[], count: number): Buffer[] => {
  let left = count;
  const rest: Buffer[] = [];
  for (const buffer of buffers) {
    if (left < buffer.length) rest.push(buffer.subarray(left));
    left = Math.max(0, left - buffer.length);
  }
  return rest;
};

/** How many of a batch's chunks are complete in its first bytes. */
export const wholeChunks = ({ start, offsets, chunks }: OutputBatch<unknown>, bytes: number): number => {
  let whole = 0;
  while (whole < chunks.length && offsets[whole]! + CHUNK_HEADER_BYTES + chunks[whole]!.length <= start + bytes)
    whole += 1;
  return whole;
};
