import { join } from "node:path";
import {
  HEADER_BYTES,
  TYPE_COMMIT,
  TYPE_END,
  TYPE_START,
  encodeHeader,
  encodeMarker,
  encodeRecord,
  saltOf,
  stamp,
} from "./format.ts";
import type { Batch } from "./gather.ts";
import { type IoFile, type JournalIo, isFull, writeAll } from "./io.ts";
import { type SegmentId, type SegmentMark, segmentName } from "./names.ts";
import { writeHead } from "./peek.ts";
import { type Start, encodeStart } from "./start.ts";

/** Thrown by a segment that must not be written any more: the failed batch goes to a new one. */
export class SegmentAbandoned extends Error {
  override readonly cause: unknown;
  constructor(cause: unknown) {
    super("segment abandoned");
    this.cause = cause;
  }
}

/**
 * The segment being written.
 *
 *    durable bytes | a marker, perhaps not synced | the batch under way | zeros, on disk | the end of the file
 *                  ^ durableLength                ^ position                             ^ prepared
 *
 * Where the zeros are, a sync has only the bytes to write; where a file grows, most file systems write their own
 * journal too, and then wait for the disk twice. So zeros are put there while nothing else is to be done. Whoever reads
 * a segment that was not closed finds nothing in them; a segment that is closed ends where it counts.
 *
 * After a failed datasync nobody knows which pages reached the disk, and the next datasync may claim success without
 * writing them; so the segment is never synced again and counts only up to durableLength.
 */
export interface SegmentWriter {
  readonly id: SegmentId;
  /** Bytes that are on disk. */
  readonly length: number;
  /** The mark it would get if it were sealed now. */
  readonly mark: SegmentMark;
  /** Returns when the batch is on disk. After any error the batch is as before, not tied to a position. */
  commit(batch: Batch): Promise<void>;
  /**
   * For a moment of rest: notes in the file that all so far is on disk, which survives the death of the process, not the
   * machine's, and prepares what the next batches are written to. Throws nothing but SegmentAbandoned.
   */
  rest(): Promise<void>;
  /** The last words of a clean close. */
  end(): Promise<void>;
  close(): Promise<void>;
}

const stampAll = (chunks: readonly Buffer[], salt: number, position: number): void => {
  let at = position;
  for (const chunk of chunks) {
    stamp(chunk, salt, at);
    at += chunk.length;
  }
};

/** Creates a segment. When this returns, its START is on disk and the head file names it; `ahead` bytes are prepared. */
export const createSegment = async (
  io: JournalIo,
  dir: string,
  id: SegmentId,
  start: Start,
  ahead: number,
): Promise<SegmentWriter> => {
  const path = join(dir, segmentName(id));
  const salt = saltOf("segment", id);
  const first = encodeRecord(TYPE_START, encodeStart(start));
  stamp(first, salt, HEADER_BYTES);
  const file = await io.open(path, "wx");
  let named = false;
  try {
    await writeAll(file, [encodeHeader("segment", { ...id, firstLsn: start.firstLsn }), first], 0);
    await file.datasync();
    await io.syncDir(dir);
    named = true;
    await writeHead(io, dir, id);
    await io.syncDir(dir);
  } catch (error) {
    await file.close().catch(() => undefined);
    // once the head may name it, it stays: an empty segment does no harm, a head without its segment looks like a loss
    if (!named) await io.unlink(path).catch(() => undefined);
    throw error;
  }
  return segmentWriter(file, id, salt, start.firstLsn, HEADER_BYTES + first.length, ahead);
};

const segmentWriter = (
  file: IoFile,
  id: SegmentId,
  salt: number,
  firstLsn: number,
  length: number,
  ahead: number,
): SegmentWriter => {
  let durableLength = length;
  let position = length;
  let prepared = length;
  let mayPrepare = ahead > 0;
  let lastLsn = firstLsn - 1;
  let noted = true;

  const marker = (type: number): Buffer => {
    const buffer = encodeMarker(type, lastLsn + 1);
    stamp(buffer, salt, position);
    return buffer;
  };

  /** Removes a partly written batch. If that fails too, the segment is given up. */
  const takeBack = async (error: unknown): Promise<never> => {
    if (!isFull(error)) throw new SegmentAbandoned(error);
    try {
      await file.truncate(position);
    } catch {
      throw new SegmentAbandoned(error);
    }
    prepared = position;
    throw error;
  };

  const write = async (buffers: readonly Buffer[]): Promise<number> => {
    try {
      return await writeAll(file, buffers, position);
    } catch (error) {
      return takeBack(error);
    }
  };

  const sync = async (): Promise<void> => {
    try {
      await file.datasync();
    } catch (error) {
      // Frees space on a full disk. Only durableLength counts, whether or not this works.
      await file.truncate(durableLength).catch(() => undefined);
      prepared = 0;
      throw new SegmentAbandoned(error);
    }
  };

  const note = async (): Promise<void> => {
    if (noted) return;
    const buffer = marker(TYPE_COMMIT);
    try {
      position += await writeAll(file, [buffer], position);
      noted = true;
    } catch {
      // The next batch overwrites whatever is there, and begins with the marker itself.
      noted = false;
    }
  };

  /** Half of it is always there, so that one write prepares for many batches. */
  const prepare = async (): Promise<void> => {
    if (!mayPrepare || prepared - position > ahead / 2) return;
    const from = Math.max(prepared, position);
    try {
      await writeAll(file, [Buffer.alloc(ahead)], from);
    } catch {
      // No space for what is not needed yet. Part of it may be there: it is nothing, to a reader too.
      mayPrepare = false;
      await file.truncate(position).catch(() => undefined);
      return;
    }
    await sync();
    prepared = from + ahead;
  };

  return {
    id,
    get length() {
      return durableLength;
    },
    get mark() {
      return { ...id, length: durableLength, firstLsn, lastLsn };
    },
    commit: async (batch) => {
      const lead = noted ? [] : [marker(TYPE_COMMIT)];
      const offset = position + (lead[0]?.length ?? 0);
      stampAll(batch.chunks, salt, offset);
      try {
        const written = await write([...lead, ...batch.chunks]);
        await sync();
        position += written;
      } catch (error) {
        stampAll(batch.chunks, salt, offset);
        throw error;
      }
      durableLength = position;
      lastLsn = batch.lastLsn;
      noted = false;
    },
    rest: async () => {
      await note();
      await prepare();
    },
    end: async () => {
      position += await write([marker(TYPE_END)]);
      await sync();
      durableLength = position;
    },
    close: async () => {
      // what is left of it costs space until the next compaction, and nothing else
      if (prepared > position) await file.truncate(position).catch(() => undefined);
      await file.close();
    },
  };
};
