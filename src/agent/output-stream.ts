import { constants } from "node:fs";
import { open, statfs, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { CHUNK_MAX_BYTES, MARKER, type OutputFd } from "../core/output-format.ts";
import { isLimit, LOST_TEXTS } from "../core/output-lost.ts";
import type { OutputLimits } from "../protocol/messages.ts";
import { type BatchChunk, createBatches, type OutputBatch, skip, wholeChunks } from "./output-batch.ts";
import { addToGap, createTailStock, openGap, sideOf, takeTail } from "./output-gap.ts";
import { createOutputPause } from "./output-pause.ts";
import { limitReached, NO_LIMITS, roomFor, type RunRoom } from "./output-room.ts";
import { type EndedOutput, Output, type TaskOutput } from "./task-output.ts";

export type { EndedOutput, TaskOutput } from "./task-output.ts";

export interface OutputStreamOptions {
  /** Longest time that output of a running task stays in memory. */
  readonly flushMs?: number;
  /** Above this many pending bytes `drained` asks for patience. */
  readonly highWaterBytes?: number;
  /** After a failed write, output is dropped for this long before the file is tried again. */
  readonly retryMs?: number;
  /** After a disk was full, it is tried again only when so much is free. */
  readonly resumeBytes?: number;
  /** Make other hosts see the bytes before they count as flushed. Default: on file systems that need it (NFS). */
  readonly sync?: boolean;
  /** For tests: writes buffers at an offset and returns how many bytes were written. */
  readonly write?: (handle: FileHandle, buffers: Buffer[], at: number) => Promise<number>;
}

export interface OutputStream {
  readonly path: string;
  /** What a run may leave here; holds for what is written from now on. */
  limit(run: number, limits: OutputLimits): void;
  /** Nothing of this run will begin any more. */
  forget(run: number): void;
  begin(run: number, row: number, attempt: number): TaskOutput;
  /** Copies the bytes before it returns. Order is kept across both file descriptors. */
  write(output: TaskOutput, fd: OutputFd, chunk: Buffer): void;
  /** No more output will come. A result must not be reported before `flushed`. */
  end(output: TaskOutput): EndedOutput;
  /** The last chunk that is in the file now, also while the task runs. */
  tail(output: TaskOutput): number;
  /** Bytes in memory. */
  readonly pending: number;
  /** Bytes that could not be kept, of all tasks. */
  readonly dropped: number;
  /** Why output is dropped at present. */
  readonly failed: Error | null;
  /** Null while there is room; else resolves when there is again. Stop reading output until then. */
  drained(): Promise<void> | null;
  /** Resolves when all that was written so far is in the file or given up. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const SMALLEST_STAGE = 128;
const FDS = [1, 2] as const;
const NEWLINE = 10;
/** Above what the server's journal is lent of its reserve at once: what was released for it is not for output. */
const RESUME_BYTES = 32 * 1024 * 1024;
/** NFS, SMB, SMB2, CIFS: hosts see each other's writes only after fsync or close. */
const REMOTE_TYPES = new Set([0x6969, 0x517b, 0xfe534d42, 0xff534d42]);
/** However little heed is paid to `drained`, no more than this is held: the rest is dropped. */
const HARD_LIMIT_FACTOR = 16;

const writeVector = async (handle: FileHandle, buffers: Buffer[], at: number): Promise<number> =>
  (await handle.writev(buffers, at)).bytesWritten;

/**
 * Opens the stream of one agent process; nobody else may write to the file. Output of many tasks is gathered and
 * written once per turn of the loop. A write that fails (disk full, quota) costs output, never the agent: what did not
 * get into the file is dropped, its tasks know how much that was, and chains of chunks stay whole. While the file
 * cannot be written, and beyond a limit for good, the last of each stream wait in memory: they go behind a marker that
 * says how much is missing, when there is room again or the task ends.
 */
export const openOutputStream = async (path: string, options: OutputStreamOptions = {}): Promise<OutputStream> => {
  const { flushMs = 200, highWaterBytes = 16 * 1024 * 1024, retryMs = 5000, write = writeVector } = options;
  const sync = options.sync ?? REMOTE_TYPES.has((await statfs(dirname(path))).type);
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  const newBatch = createBatches<Output>();
  const staging = new Set<Output>();
  const rooms = new Map<number, RunRoom>();
  const tails = createTailStock();
  const pause = createOutputPause(dirname(path), retryMs, options.resumeBytes ?? RESUME_BYTES);
  let position = (await handle.stat()).size;
  let next: OutputBatch<Output> | null = null;
  let inFlight: OutputBatch<Output> | null = null;
  let scheduled = false;
  let timer: NodeJS.Timeout | null = null;
  let waiting: { readonly promise: Promise<void>; readonly resolve: () => void } | null = null;
  let pending = 0;
  let dropped = 0;
  let closed = false;

  const roomOf = (run: number): RunRoom => {
    let room = rooms.get(run);
    if (room === undefined) rooms.set(run, (room = { limits: NO_LIMITS, used: 0 }));
    return room;
  };

  const released = (bytes: number): void => {
    pending -= bytes;
    if (waiting === null || pending > highWaterBytes / 2) return;
    waiting.resolve();
    waiting = null;
  };

  const mayWrite = (): boolean => !closed && pause.isOver();

  const count = (output: Output, bytes: number): void => {
    output.taken += bytes;
    output.room.used += bytes;
  };

  const gapOf = (output: Output, cause: number): NonNullable<Output["gap"]> => {
    if (output.cause === 0) output.cause = cause;
    return (output.gap ??= openGap(cause));
  };

  /** Bytes that are not taken: the last of them wait in memory. */
  const hold = (output: Output, fd: OutputFd, bytes: Buffer, cause: number): void => {
    const gap = gapOf(output, cause);
    const before = sideOf(gap, fd).missing;
    addToGap(gap, fd, bytes, tails);
    dropped += sideOf(gap, fd).missing - before;
  };

  const add = (output: Output, chunk: BatchChunk, bytes: Buffer, from: number): void => {
    const batch: OutputBatch<Output> = (next ??= newBatch(position));
    const before = batch.bytes;
    output.lastAt = batch.add(output, chunk, bytes, from);
    output.batch = batch;
    position += batch.bytes - before;
    pending += batch.bytes - before;
    if (scheduled || inFlight !== null) return;
    scheduled = true;
    setImmediate(writeNext);
  };

  /** Makes chunks of bytes, which thereby get their place in the file. */
  const seal = (output: Output, fd: OutputFd, bytes: Buffer, from: number, to: number): void => {
    const { run, row, attempt } = output;
    for (let at = from; at < to; at += CHUNK_MAX_BYTES) {
      const length = Math.min(CHUNK_MAX_BYTES, to - at);
      add(output, { run, row, attempt, fd, flags: 0, length, prev: output.lastAt }, bytes, at);
    }
  };

  const mark = (output: Output, fd: OutputFd, missing: number, cause: number): void => {
    const { run, row, attempt } = output;
    const line = `[slipway: ${missing} bytes are missing here: ${LOST_TEXTS[cause]}]\n`;
    const bytes = Buffer.from((output.unended & fd) === 0 ? line : `\n${line}`);
    output.unended &= ~fd;
    add(output, { run, row, attempt, fd, flags: MARKER, length: bytes.length, prev: output.lastAt, missing }, bytes, 0);
  };

  /** Goes on behind a gap, with a marker in its place and what is left of it. */
  const closeGap = (output: Output): void => {
    const { gap } = output;
    if (gap === null) return;
    output.gap = null;
    for (const fd of FDS) {
      const tail = takeTail(gap, fd, tails);
      if (sideOf(gap, fd).missing > 0) mark(output, fd, sideOf(gap, fd).missing, gap.cause);
      if (tail.length === 0) continue;
      count(output, tail.length);
      seal(output, fd, tail, 0, tail.length);
      note(output, fd, tail);
    }
  };

  const dropGap = (output: Output): void => {
    const { gap } = output;
    if (gap === null) return;
    output.gap = null;
    for (const fd of FDS) dropped += takeTail(gap, fd, tails).length;
  };

  const note = (output: Output, fd: OutputFd, bytes: Buffer): void => {
    if (bytes[bytes.length - 1] === NEWLINE) output.unended &= ~fd;
    else output.unended |= fd;
  };

  const unstage = (output: Output): void => {
    const { staged, stagedBytes, stagedFd } = output;
    if (staged === null || stagedBytes === 0) return;
    staging.delete(output);
    output.staged = null;
    output.stagedBytes = 0;
    if (mayWrite()) {
      closeGap(output);
      seal(output, stagedFd, staged, 0, stagedBytes);
    } else {
      count(output, -stagedBytes);
      hold(output, stagedFd, staged.subarray(0, stagedBytes), pause.cause);
    }
    released(stagedBytes);
  };

  const unstageAll = (): void => {
    for (const output of staging) unstage(output);
  };

  const stage = (output: Output, fd: OutputFd, chunk: Buffer): void => {
    const total = output.stagedBytes + chunk.length;
    let { staged } = output;
    if (staged === null || staged.length < total) {
      let size = SMALLEST_STAGE;
      while (size < total) size *= 2;
      const grown = Buffer.allocUnsafe(size);
      staged?.copy(grown, 0, 0, output.stagedBytes);
      output.staged = staged = grown;
    }
    chunk.copy(staged, output.stagedBytes);
    if (output.stagedBytes === 0) staging.add(output);
    output.stagedBytes = total;
    output.stagedFd = fd;
    pending += chunk.length;
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      unstageAll();
    }, flushMs);
    timer.unref();
  };

  const take = (output: Output, fd: OutputFd, chunk: Buffer): void => {
    if (chunk.length === 0) return;
    count(output, chunk.length);
    note(output, fd, chunk);
    if (output.stagedBytes > 0 && (output.stagedFd !== fd || output.stagedBytes + chunk.length > CHUNK_MAX_BYTES)) {
      unstage(output);
    }
    if (chunk.length >= CHUNK_MAX_BYTES) seal(output, fd, chunk, 0, chunk.length);
    else stage(output, fd, chunk);
    if (pending > highWaterBytes) unstageAll();
  };

  /** Returns how many bytes are in the file when it fails, with the error. */
  const writeAll = async (batch: OutputBatch<Output>): Promise<{ error: unknown; written: number } | null> => {
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
      // where a sync was needed, only that says what is there
      return { error, written: sync ? 0 : written };
    }
  };

  /** The first chunks of a batch are in the file. */
  const kept = ({ refs, offsets, chunks }: OutputBatch<Output>, end: number): void => {
    for (let nth = 0; nth < end; nth++) {
      const output = refs[nth]!;
      const { fd, flags, length } = chunks[nth]!;
      output.diskAt = offsets[nth]!;
      if (flags === MARKER) continue;
      if (fd === 1) output.stdoutBytes += length;
      else output.stderrBytes += length;
    }
  };

  /** The others are not: their tasks have a gap there. */
  const giveUp = ({ refs, chunks }: OutputBatch<Output>, from: number): void => {
    for (let nth = from; nth < refs.length; nth++) {
      const output = refs[nth]!;
      const { fd, flags, length, missing = 0 } = chunks[nth]!;
      output.lastAt = output.diskAt;
      output.unended |= fd;
      sideOf(gapOf(output, pause.cause), fd).missing += flags === MARKER ? missing : length;
      if (flags === MARKER) continue;
      count(output, -length);
      dropped += length;
    }
  };

  const settle = (batch: OutputBatch<Output>): void => {
    for (const output of batch.refs) if (output.batch === batch) output.batch = null;
    batch.settle();
    released(batch.bytes);
  };

  const broken = async (batch: OutputBatch<Output>, error: unknown, written: number): Promise<void> => {
    pause.fail(error);
    const whole = wholeChunks(batch, written);
    kept(batch, whole);
    giveUp(batch, whole);
    // What came after has its place behind bytes that are not there: it goes too, and the place is used again.
    position = batch.offsets[whole] ?? batch.start + batch.bytes;
    const behind = next;
    next = null;
    if (behind !== null) giveUp(behind, 0);
    // the room that half a chunk takes is others'
    await handle.truncate(position).catch(() => undefined);
    settle(batch);
    if (behind !== null) settle(behind);
  };

  const writeNext = (): void => {
    scheduled = false;
    if (inFlight !== null || next === null) return;
    const batch = next;
    inFlight = batch;
    next = null;
    void writeAll(batch).then(async (failure) => {
      if (failure === null) {
        kept(batch, batch.refs.length);
        settle(batch);
      } else await broken(batch, failure.error, failure.written);
      inFlight = null;
      writeNext();
    });
  };

  const flush = async (): Promise<void> => {
    unstageAll();
    await (next ?? inFlight)?.done;
  };

  return {
    path,

    limit: (run, limits) => {
      roomOf(run).limits = limits;
    },

    forget: (run) => void rooms.delete(run),

    begin: (run, row, attempt): TaskOutput => new Output(run, row, attempt, roomOf(run)),

    write(task, fd, chunk) {
      const output = task as Output;
      if (chunk.length === 0) return;
      if (fd === 1) output.writtenOut += chunk.length;
      else output.writtenErr += chunk.length;
      const mayTake = mayWrite() && pending <= HARD_LIMIT_FACTOR * highWaterBytes;
      const limited = output.gap !== null && isLimit(output.gap.cause);
      if (!mayTake || limited) {
        unstage(output);
        return hold(output, fd, chunk, pause.cause);
      }
      closeGap(output);
      const room = roomFor(output.room, output.taken);
      if (room >= chunk.length) return take(output, fd, chunk);
      const cause = limitReached(output.room, output.taken);
      take(output, fd, chunk.subarray(0, room));
      unstage(output);
      // for good: a gap that a full disk made is behind us
      hold(output, fd, chunk.subarray(room), cause);
    },

    end(task) {
      const output = task as Output;
      unstage(output);
      if (mayWrite()) closeGap(output);
      else dropGap(output);
      output.flushed = output.batch?.done ?? null;
      return output;
    },

    tail: (task) => (task as Output).diskAt,

    get pending() {
      return pending;
    },
    get dropped() {
      return dropped;
    },
    get failed() {
      return pause.error;
    },

    drained() {
      if (pending <= highWaterBytes) return null;
      if (waiting === null) {
        let resolve!: () => void;
        const promise = new Promise<void>((settled) => (resolve = settled));
        waiting = { promise, resolve };
      }
      return waiting.promise;
    },

    flush,

    async close() {
      if (closed) return;
      await flush();
      closed = true;
      if (timer !== null) clearTimeout(timer);
      unstageAll();
      await (next ?? inFlight)?.done;
      await handle.close();
    },
  };
};
