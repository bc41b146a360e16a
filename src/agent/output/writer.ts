import type { FileHandle } from "node:fs/promises";
import { MARKER } from "../../core/output-format.ts";
import type { Backlog } from "./backlog.ts";
import { type BatchChunk, createBatches, type OutputBatch, skip, wholeChunks } from "./batch.ts";
import type { Losses } from "./losses.ts";
import type { OutputPause } from "./pause.ts";
import type { Output } from "./task-output.ts";

/**
 * Gets chunks of all tasks into the file: those of one turn of the loop with one write, and the next ones while that is
 * under way. A chunk gets its place in the file when it is added; after a failed write, all chunks behind the last
 * whole one are given up, and their place is used again.
 */
export interface OutputWriter {
  add(output: Output, chunk: BatchChunk, bytes: Buffer, from: number): void;
  /** Resolves when everything that was added is in the file or given up. */
  settled(): Promise<void>;
}

export interface OutputFile {
  readonly path: string;
  readonly handle: FileHandle;
  /** Where the first byte goes. */
  readonly position: number;
  /** Bytes count only once the file system says that other hosts see them. */
  readonly sync: boolean;
  /** Writes buffers at an offset and returns how many bytes were written. */
  readonly write: (handle: FileHandle, buffers: Buffer[], at: number) => Promise<number>;
}

/** When it fails, returns how many bytes are in the file, with the error. */
const writeBatch = async (
  { path, handle, sync, write }: OutputFile,
  batch: OutputBatch<Output>,
): Promise<{ error: unknown; written: number } | null> => {
  let written = 0;
  try {
    for (let buffers = batch.buffers(); buffers.length > 0;) {
      const at = batch.start + written;
      const count = await write(handle, buffers, at);
      if (count <= 0) throw new Error(`nothing could be written at offset ${at} of ${path}`);
      buffers = skip(buffers, count);
      written += count;
    }
    if (sync) await handle.datasync();
    return null;
  } catch (error) {
    // where a sync was needed, only the sync says what is there
    return { error, written: sync ? 0 : written };
  }
};

/** The first chunks of a batch are in the file. */
const keep = ({ refs, offsets, chunks }: OutputBatch<Output>, end: number): void => {
  for (let nth = 0; nth < end; nth++) {
    const output = refs[nth]!;
    const { fd, flags, length } = chunks[nth]!;
    output.diskAt = offsets[nth]!;
    if (flags === MARKER) continue;
    if (fd === 1) output.stdoutBytes += length;
    else output.stderrBytes += length;
  }
};

export const createOutputWriter = (
  file: OutputFile,
  { pause, losses, backlog }: { pause: OutputPause; losses: Losses; backlog: Backlog },
): OutputWriter => {
  const newBatch = createBatches<Output>();
  let { position } = file;
  let next: OutputBatch<Output> | null = null;
  let inFlight: OutputBatch<Output> | null = null;
  let scheduled = false;

  /** The chunks from here on are not in the file: their tasks have a gap. */
  const giveUp = ({ refs, chunks }: OutputBatch<Output>, from: number): void => {
    for (let nth = from; nth < refs.length; nth++) {
      const output = refs[nth]!;
      output.lastAt = output.diskAt;
      losses.lose(output, chunks[nth]!, pause.cause);
    }
  };

  const settle = (batch: OutputBatch<Output>): void => {
    for (const output of batch.refs) if (output.batch === batch) output.batch = null;
    batch.settle();
    backlog.release(batch.bytes);
  };

  const fail = async (batch: OutputBatch<Output>, error: unknown, written: number): Promise<void> => {
    pause.fail(error);
    const whole = wholeChunks(batch, written);
    keep(batch, whole);
    giveUp(batch, whole);
    // What came after has its place behind bytes that are not there: it is given up too, and the place is used again.
    position = batch.offsets[whole] ?? batch.start + batch.bytes;
    const behind = next;
    next = null;
    if (behind !== null) giveUp(behind, 0);
    // others can use the room that half a chunk takes
    await file.handle.truncate(position).catch(() => undefined);
    settle(batch);
    if (behind !== null) settle(behind);
  };

  const writeNext = (): void => {
    scheduled = false;
    if (inFlight !== null || next === null) return;
    const batch = next;
    inFlight = batch;
    next = null;
    void writeBatch(file, batch).then(async (failure) => {
      if (failure === null) {
        keep(batch, batch.refs.length);
        settle(batch);
      } else await fail(batch, failure.error, failure.written);
      inFlight = null;
      writeNext();
    });
  };

  return {
    add: (output, chunk, bytes, from) => {
      const batch: OutputBatch<Output> = (next ??= newBatch(position));
      const before = batch.bytes;
      output.lastAt = batch.add(output, chunk, bytes, from);
      output.batch = batch;
      position += batch.bytes - before;
      backlog.add(batch.bytes - before);
      if (scheduled || inFlight !== null) return;
      scheduled = true;
      setImmediate(writeNext);
    },
    settled: async () => {
      await (next ?? inFlight)?.done;
    },
  };
};
