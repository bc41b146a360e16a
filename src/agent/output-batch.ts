import { CHUNK_HEADER_BYTES, CHUNK_MAX_BYTES, encodeChunkHeader, type ChunkHeader } from "../core/output-format.ts";

const ARENA_BYTES = 4 * (CHUNK_HEADER_BYTES + CHUNK_MAX_BYTES);
/** Arenas kept for the next batches: 2 MB. */
const SPARE_ARENAS = 8;

/** Chunks that are written together: copied into few large buffers, so that one system call writes thousands. */
export interface OutputBatch<Ref> {
  /** File offset of the first byte. */
  readonly start: number;
  readonly bytes: number;
  /** Who has chunks here, in order, with the offset of each chunk's header. */
  readonly refs: readonly Ref[];
  readonly offsets: readonly number[];
  /** Resolves, never rejects, when the batch was written or given up. */
  readonly done: Promise<void>;
  /** Copies a chunk in and returns the file offset of its header. */
  add(ref: Ref, header: ChunkHeader, payload: Buffer, from: number): number;
  buffers(): Buffer[];
  /** Ends `done` and lets the memory be used again. */
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
      done,

      add(ref, header, payload, from) {
        const size = CHUNK_HEADER_BYTES + header.length;
        let last = arenas.length - 1;
        if (last < 0 || used[last]! + size > ARENA_BYTES) {
          arenas.push(spare.pop() ?? Buffer.allocUnsafeSlow(ARENA_BYTES));
          used.push(0);
          last++;
        }
        const arena = arenas[last]!;
        const at = used[last]!;
        encodeChunkHeader(arena, at, header);
        payload.copy(arena, at + CHUNK_HEADER_BYTES, from, from + header.length);
        used[last] = at + size;
        const offset = start + bytes;
        bytes += size;
        refs.push(ref);
        offsets.push(offset);
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
