import { constants } from "node:fs";
import { open, statfs, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { CHUNK_MAX_BYTES, type OutputFd } from "../../core/output-format.ts";
import { isLimit } from "../../core/output-lost.ts";
import type { OutputLimits } from "../../protocol/messages.ts";
import { createBacklog } from "./backlog.ts";
import { createChunks } from "./chunks.ts";
import { createLosses } from "./losses.ts";
import { createOutputPause } from "./pause.ts";
import { limitReached, NO_LIMITS, roomFor, type RunRoom } from "./room.ts";
import { createStage } from "./stage.ts";
import { type EndedOutput, Output, type TaskOutput } from "./task-output.ts";
import { createOutputWriter } from "./writer.ts";
import type { Row, RunId } from "../../core/ids.ts";

export type { EndedOutput, TaskOutput } from "./task-output.ts";

export interface OutputStreamOptions {
  /** Longest time that output of a running task stays in memory. */
  readonly flushMs?: number;
  /** Above this many pending bytes `drained` asks for patience. */
  readonly highWaterBytes?: number;
  /** After a failed write, output is dropped for this long before the file is tried again. */
  readonly retryMs?: number;
  /** After a disk was full, it is tried again only when this much is free. */
  readonly resumeBytes?: number;
  /** Make other hosts see the bytes before they count as flushed. Default: on file systems that need it (NFS). */
  readonly sync?: boolean;
  /** For tests: writes buffers at an offset and returns how many bytes were written. */
  readonly write?: (handle: FileHandle, buffers: Buffer[], at: number) => Promise<number>;
}

export interface OutputStream {
  readonly path: string;
  /** Limits what a run may leave here; applies to what is written from now on. */
  limit(run: RunId, limits: OutputLimits): void;
  /** Nothing of this run will begin any more. */
  forget(run: RunId): void;
  begin(run: RunId, row: Row, attempt: number): TaskOutput;
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
  /** Why output is being dropped at present. */
  readonly failed: Error | null;
  /** Null while there is room; else resolves when there is again. Stop reading output until then. */
  drained(): Promise<void> | null;
  /** Resolves when all that was written so far is in the file or given up. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * More than the server's journal borrows from its reserve at once: space released for the journal is not for output.
 */
const RESUME_BYTES = 32 * 1024 * 1024;
/** NFS, SMB, SMB2, CIFS: hosts see each other's writes only after fsync or close. */
const REMOTE_TYPES = new Set([0x6969, 0x517b, 0xfe534d42, 0xff534d42]);
/** Even if nobody heeds `drained`, no more than this is held: the rest is dropped. */
const HARD_LIMIT_FACTOR = 16;

const writeVector = async (handle: FileHandle, buffers: Buffer[], at: number): Promise<number> =>
  (await handle.writev(buffers, at)).bytesWritten;

/**
 * Opens the stream of one agent process; nobody else may write to the file. Output of many tasks is gathered and
 * written once per turn of the loop. A write that fails (disk full, quota) costs output, never the agent: what did not
 * get into the file is dropped, its tasks know how much, and chains of chunks stay whole. While the file cannot be
 * written, and for good beyond a limit, the last bytes of each stream wait in memory. When there is room again or the
 * task ends, they follow a marker that says how much is missing.
 */
export const openOutputStream = async (path: string, options: OutputStreamOptions = {}): Promise<OutputStream> => {
  const { flushMs = 200, highWaterBytes = 16 * 1024 * 1024, retryMs = 5000, write = writeVector } = options;
  const sync = options.sync ?? REMOTE_TYPES.has((await statfs(dirname(path))).type);
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  const position = (await handle.stat()).size;
  const rooms = new Map<number, RunRoom>();
  const backlog = createBacklog(highWaterBytes);
  const losses = createLosses();
  const pause = createOutputPause(dirname(path), retryMs, options.resumeBytes ?? RESUME_BYTES);
  const writer = createOutputWriter({ path, handle, position, sync, write }, { pause, losses, backlog });
  const chunks = createChunks(writer, losses);
  let closed = false;

  const roomOf = (run: RunId): RunRoom => {
    let room = rooms.get(run);
    if (room === undefined) rooms.set(run, (room = { limits: NO_LIMITS, used: 0 }));
    return room;
  };

  const mayWrite = (): boolean => !closed && pause.isOver();

  const stage = createStage({
    flushMs,
    backlog,
    leave: (output, fd, bytes, length) => {
      if (mayWrite()) {
        chunks.closeGap(output);
        chunks.seal(output, fd, bytes, 0, length);
      } else {
        output.count(-length);
        losses.hold(output, fd, bytes.subarray(0, length), pause.cause);
      }
    },
  });

  const take = (output: Output, fd: OutputFd, chunk: Buffer): void => {
    if (chunk.length === 0) return;
    output.count(chunk.length);
    output.note(fd, chunk);
    if (output.stagedBytes > 0 && (output.stagedFd !== fd || output.stagedBytes + chunk.length > CHUNK_MAX_BYTES))
      stage.clear(output);
    if (chunk.length >= CHUNK_MAX_BYTES) chunks.seal(output, fd, chunk, 0, chunk.length);
    else stage.add(output, fd, chunk);
    if (backlog.bytes > highWaterBytes) stage.clearAll();
  };

  const flush = async (): Promise<void> => {
    stage.clearAll();
    await writer.settled();
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
      const mayTake = mayWrite() && backlog.bytes <= HARD_LIMIT_FACTOR * highWaterBytes;
      const limited = output.gap !== null && isLimit(output.gap.cause);
      if (!mayTake || limited) {
        stage.clear(output);
        return losses.hold(output, fd, chunk, pause.cause);
      }
      chunks.closeGap(output);
      const room = roomFor(output.room, output.taken);
      if (room >= chunk.length) return take(output, fd, chunk);
      const cause = limitReached(output.room, output.taken);
      take(output, fd, chunk.subarray(0, room));
      stage.clear(output);
      // for good: the gap that a full disk made is behind us
      losses.hold(output, fd, chunk.subarray(room), cause);
    },

    end(task) {
      const output = task as Output;
      stage.clear(output);
      if (mayWrite()) chunks.closeGap(output);
      else losses.forget(output);
      output.flushed = output.batch?.done ?? null;
      return output;
    },

    tail: (task) => (task as Output).diskAt,

    get pending() {
      return backlog.bytes;
    },
    get dropped() {
      return losses.dropped;
    },
    get failed() {
      return pause.error;
    },

    drained: backlog.drained,

    flush,

    async close() {
      if (closed) return;
      await flush();
      closed = true;
      stage.stop();
      await flush();
      await handle.close();
    },
  };
};
