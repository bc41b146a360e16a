import { constants } from "node:fs";
import { open, statfs, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { CHUNK_HEADER_BYTES, CHUNK_MAX_BYTES, NO_CHUNK, type OutputFd } from "../core/output-format.ts";
import { createBatches, type OutputBatch } from "./output-batch.ts";

/**
 * The output of one attempt. All fields may be read; only the stream changes them. After `end`, and once `flushed` has
 * resolved or is null, they are final: `lastAt` leads to what is in the file, `lost` says whether that is all.
 */
export interface TaskOutput {
  readonly run: number;
  readonly row: number;
  readonly attempt: number;
  /** Offset of the last chunk's header, -1 for none. */
  readonly lastAt: number;
  /** Bytes the attempt wrote, lost ones included. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Some bytes could not be kept. */
  readonly lost: boolean;
}

export interface EndedOutput extends TaskOutput {
  /** Resolves, never rejects, when all is in the file or given up; null when there is nothing to wait for. */
  readonly flushed: Promise<void> | null;
}

export interface OutputStreamOptions {
  /** Longest time that output of a running task stays in memory. */
  readonly flushMs?: number;
  /** Above this many pending bytes `drained` asks for patience. */
  readonly highWaterBytes?: number;
  /** After a failed write, output is dropped for this long before the file is tried again. */
  readonly retryMs?: number;
  /** Make other hosts see the bytes before they count as flushed. Default: on file systems that need it (NFS). */
  readonly sync?: boolean;
  /** For tests: writes buffers at an offset and returns how many bytes were written. */
  readonly write?: (handle: FileHandle, buffers: Buffer[], at: number) => Promise<number>;
}

export interface OutputStream {
  readonly path: string;
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

interface Output extends TaskOutput {
  lastAt: number;
  stdoutBytes: number;
  stderrBytes: number;
  lost: boolean;
  flushed: Promise<void> | null;
  /** Last chunk known to be in the file. */
  diskAt: number;
  /** Bytes of `stagedFd` that are not a chunk yet. */
  staged: Buffer | null;
  stagedBytes: number;
  stagedFd: OutputFd;
  /** The batch that holds the last chunk, until it is written. */
  batch: OutputBatch<Output> | null;
}

const SMALLEST_STAGE = 128;
/** NFS, SMB, SMB2, CIFS: hosts see each other's writes only after fsync or close. */
const REMOTE_TYPES = new Set([0x6969, 0x517b, 0xfe534d42, 0xff534d42]);
/** However little heed is paid to `drained`, no more than this is held: the rest is dropped. */
const HARD_LIMIT_FACTOR = 16;

const writeVector = async (handle: FileHandle, buffers: Buffer[], at: number): Promise<number> =>
  (await handle.writev(buffers, at)).bytesWritten;

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** What is left of some buffers after the first `count` bytes. */
const skip = (buffers: Buffer[], count: number): Buffer[] => {
  let left = count;
  const rest: Buffer[] = [];
  for (const buffer of buffers) {
    if (left < buffer.length) rest.push(buffer.subarray(left));
    left = Math.max(0, left - buffer.length);
  }
  return rest;
};

/**
 * Opens the stream of one agent process; nobody else may write to the file. Output of many tasks is gathered and
 * written once per turn of the loop. A write that fails (disk full, quota) costs output, never the agent: what was in
 * memory is dropped, its tasks are marked `lost`, and chains of chunks stay whole.
 */
export const openOutputStream = async (path: string, options: OutputStreamOptions = {}): Promise<OutputStream> => {
  const { flushMs = 200, highWaterBytes = 16 * 1024 * 1024, retryMs = 5000, write = writeVector } = options;
  const sync = options.sync ?? REMOTE_TYPES.has((await statfs(dirname(path))).type);
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  const newBatch = createBatches<Output>();
  const staging = new Set<Output>();
  let position = (await handle.stat()).size;
  let next: OutputBatch<Output> | null = null;
  let inFlight: OutputBatch<Output> | null = null;
  let scheduled = false;
  let timer: NodeJS.Timeout | null = null;
  let waiting: { readonly promise: Promise<void>; readonly resolve: () => void } | null = null;
  let pending = 0;
  let dropped = 0;
  let failed: Error | null = null;
  let failedAt = 0;
  let closed = false;

  const drop = (output: Output, bytes: number): void => {
    dropped += bytes;
    output.lost = true;
  };

  const released = (bytes: number): void => {
    pending -= bytes;
    if (waiting === null || pending > highWaterBytes / 2) return;
    waiting.resolve();
    waiting = null;
  };

  const mayWrite = (): boolean => {
    if (closed) return false;
    if (failed !== null && performance.now() - failedAt >= retryMs) failed = null;
    return failed === null;
  };

  /** Makes chunks of bytes, which thereby get their place in the file. */
  const seal = (output: Output, fd: OutputFd, bytes: Buffer, from: number, to: number): void => {
    for (let at = from; at < to; at += CHUNK_MAX_BYTES) {
      const length = Math.min(CHUNK_MAX_BYTES, to - at);
      const { run, row, attempt } = output;
      const batch: OutputBatch<Output> = (next ??= newBatch(position));
      const before = batch.bytes;
      output.lastAt = batch.add(output, { run, row, attempt, fd, flags: 0, length, prev: output.lastAt }, bytes, at);
      output.batch = batch;
      position += batch.bytes - before;
      pending += batch.bytes - before;
    }
    if (scheduled || inFlight !== null) return;
    scheduled = true;
    setImmediate(writeNext);
  };

  const unstage = (output: Output): void => {
    const { staged, stagedBytes, stagedFd } = output;
    if (staged === null || stagedBytes === 0) return;
    staging.delete(output);
    output.staged = null;
    output.stagedBytes = 0;
    if (mayWrite()) seal(output, stagedFd, staged, 0, stagedBytes);
    else drop(output, stagedBytes);
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

  const writeAll = async (batch: OutputBatch<Output>): Promise<void> => {
    let buffers = batch.buffers();
    for (let at = batch.start; buffers.length > 0;) {
      const count = await write(handle, buffers, at);
      if (count <= 0) throw new Error(`nothing could be written at offset ${at} of ${path}`);
      buffers = skip(buffers, count);
      at += count;
    }
    if (sync) await handle.datasync();
  };

  const giveUp = (batch: OutputBatch<Output>): void => {
    for (const output of batch.refs) {
      output.lost = true;
      output.lastAt = output.diskAt;
      if (output.batch === batch) output.batch = null;
    }
    dropped += batch.bytes - batch.refs.length * CHUNK_HEADER_BYTES;
    batch.settle();
    released(batch.bytes);
  };

  const writeNext = (): void => {
    scheduled = false;
    if (inFlight !== null || next === null) return;
    const batch = next;
    inFlight = batch;
    next = null;
    const written = (): void => {
      for (let nth = 0; nth < batch.refs.length; nth++) {
        const output = batch.refs[nth]!;
        output.diskAt = batch.offsets[nth]!;
        if (output.batch === batch) output.batch = null;
      }
      batch.settle();
      released(batch.bytes);
    };
    const broken = (error: unknown): void => {
      failed = asError(error);
      failedAt = performance.now();
      // What came after has its place behind bytes that are not there: it goes too, and the place is used again.
      position = batch.start;
      giveUp(batch);
      if (next !== null) giveUp(next);
      next = null;
    };
    void writeAll(batch)
      .then(written, broken)
      .then(() => {
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

    begin: (run, row, attempt): TaskOutput => {
      const output: Output = {
        run,
        row,
        attempt,
        lastAt: NO_CHUNK,
        stdoutBytes: 0,
        stderrBytes: 0,
        lost: false,
        flushed: null,
        diskAt: NO_CHUNK,
        staged: null,
        stagedBytes: 0,
        stagedFd: 1,
        batch: null,
      };
      return output;
    },

    write(task, fd, chunk) {
      const output = task as Output;
      if (chunk.length === 0) return;
      if (fd === 1) output.stdoutBytes += chunk.length;
      else output.stderrBytes += chunk.length;
      if (!mayWrite() || pending > HARD_LIMIT_FACTOR * highWaterBytes) return drop(output, chunk.length);
      if (output.stagedBytes > 0 && (output.stagedFd !== fd || output.stagedBytes + chunk.length > CHUNK_MAX_BYTES)) {
        unstage(output);
      }
      if (chunk.length >= CHUNK_MAX_BYTES) seal(output, fd, chunk, 0, chunk.length);
      else stage(output, fd, chunk);
      if (pending > highWaterBytes) unstageAll();
    },

    end(task) {
      const output = task as Output;
      unstage(output);
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
      return failed;
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
