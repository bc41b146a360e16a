import { NO_CHUNK, type OutputFd } from "../../core/output-format.ts";
import type { OutputLost } from "../../core/output-lost.ts";
import type { OutputBatch } from "./batch.ts";
import type { Gap } from "./gap.ts";
import type { RunRoom } from "./room.ts";
import type { Row, RunId } from "../../core/ids.ts";

/**
 * The output of one attempt. All fields may be read; only the stream changes them. After `end`, and once `flushed` has
 * resolved or is null, they are final: `lastAt` leads to what is in the file, `lost` says what is not.
 */
export interface TaskOutput {
  readonly run: RunId;
  readonly row: Row;
  readonly attempt: number;
  /** Offset of the last chunk's header, -1 for none. */
  readonly lastAt: number;
  /** Bytes of the attempt that are in the file. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Bytes that are in the file or on their way to it. */
  readonly taken: number;
  /** What it wrote that is not in the file; null when everything is. */
  readonly lost: OutputLost | null;
}

export interface EndedOutput extends TaskOutput {
  /** Resolves, never rejects, when everything is in the file or given up; null when there is nothing to wait for. */
  readonly flushed: Promise<void> | null;
}

const NEWLINE = 10;

/** As the stream sees it. */
export class Output implements EndedOutput {
  readonly run: RunId;
  readonly row: Row;
  readonly attempt: number;
  readonly room: RunRoom;
  lastAt = NO_CHUNK;
  stdoutBytes = 0;
  stderrBytes = 0;
  taken = 0;
  writtenOut = 0;
  writtenErr = 0;
  flushed: Promise<void> | null = null;
  /** Last chunk known to be in the file. */
  diskAt = NO_CHUNK;
  /** Bytes of `stagedFd` that are not a chunk yet. */
  staged: Buffer | null = null;
  stagedBytes = 0;
  stagedFd: OutputFd = 1;
  /** The batch that holds the last chunk, until it is written. */
  batch: OutputBatch<Output> | null = null;
  /** Set while bytes are not taken. */
  gap: Gap | null = null;
  /** Why the first bytes were not taken. */
  cause = 0;
  /** Streams whose last byte taken does not end a line, as bits. */
  unended = 0;

  constructor(run: RunId, row: Row, attempt: number, room: RunRoom) {
    this.run = run;
    this.row = row;
    this.attempt = attempt;
    this.room = room;
  }

  /** Counts bytes that are in the file or on their way to it; negative: that no longer are. */
  count(bytes: number): void {
    this.taken += bytes;
    this.room.used += bytes;
  }

  /** These were the last bytes of a stream so far. */
  note(fd: OutputFd, bytes: Buffer): void {
    if (bytes[bytes.length - 1] === NEWLINE) this.unended &= ~fd;
    else this.unended |= fd;
  }

  get lost(): OutputLost | null {
    const stdout = this.writtenOut - this.stdoutBytes;
    const stderr = this.writtenErr - this.stderrBytes;
    return stdout + stderr > 0 ? { stdout, stderr, reason: this.cause } : null;
  }
}
