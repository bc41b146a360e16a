import { join } from "node:path";
import { SlipwayError } from "../errors.ts";
import { createChain } from "./chain.ts";
import { FIRST_INTERNAL_TYPE } from "./format.ts";
import { createDurable, tell } from "./durable.ts";
import { createGatherer } from "./gather.ts";
import { type JournalIo, isFull, nodeIo } from "./io.ts";
import { type SegmentMark, parseName } from "./names.ts";
import { type Writing, createPump } from "./pump.ts";
import { loadJournal } from "./read.ts";
import { type Retry, type RetryTimes, createRetry, defaultRetryTimes } from "./retry.ts";
import type { Reserve } from "./reserve.ts";
import type { SnapshotInfo } from "./snapshot.ts";
import type { Replay } from "./walk.ts";

/**
 *   ok ──(no room)──► full ──(room again)──► ok       records wait in memory, none is reported durable
 *    └───────────────► closed                         by close(), or for good after an error (`fatal`)
 */
export type JournalState = "ok" | "full" | "closed";

export interface JournalStateDetail {
  readonly reason: string;
  readonly error?: unknown;
  /** The journal can never be written again by this process: it should end. */
  readonly fatal: boolean;
}

export interface Journal {
  /**
   * Takes a record into the next group commit and returns its LSN. The payload is copied. Types go up to 239. Throws
   * only when the journal is closed or the record is over 256 MB.
   */
  append(type: number, payload: Uint8Array | readonly Uint8Array[]): number;
  /** LSN of the last record taken. */
  readonly appended: number;
  /** All records up to this LSN survive the death of process and machine. */
  readonly durable: number;
  /** Bytes taken but not yet on disk; they grow without bound while the state is `full`. */
  readonly pendingBytes: number;
  /** Called before a group commit collects what was appended: what the listener appends joins it. */
  beforeCommit(listener: () => void): void;
  /** Called after each group commit. */
  onDurable(listener: (lsn: number) => void): void;
  /** Rejects if the journal fails or closes first. */
  whenDurable(lsn: number): Promise<void>;
  readonly state: JournalState;
  onState(listener: (state: JournalState, detail: JournalStateDetail) => void): void;
  /** Tries a full disk again at once. */
  retryNow(): void;
  /**
   * Ends the current segment with the last record appended before this call, and starts a new one. Take the state for a
   * snapshot of `upTo` at the moment of the call, not when the promise resolves: what is appended in between is in the
   * new segment, and replays on top.
   */
  roll(): Promise<{ upTo: SegmentMark }>;
  /** Checks that the snapshot is whole, then deletes what it covers, unless history is kept. */
  snapshotWritten(snapshot: SnapshotInfo): Promise<void>;
  readonly bytesSinceSnapshot: number;
  sizeOnDisk(): Promise<number>;
  /** Commits what was appended and closes. Rejects if that could not be written; the files are closed even then. */
  close(): Promise<void>;
  /** What opening found worth reporting, such as a torn tail that was cut. */
  readonly warnings: readonly string[];
}

export interface JournalOptions {
  readonly dir: string;
  /** Higher than that of any earlier server. */
  readonly epoch: number;
  readonly io?: JournalIo;
  /** Keeps all segments and snapshots, whatever newer snapshots cover. */
  readonly keepHistory?: boolean;
  /** A segment ends with the commit that reaches this size. */
  readonly segmentBytes?: number;
  /** How much of a segment is made before it is needed, while nothing is to be written. */
  readonly aheadBytes?: number;
  /**
   * Called after each group commit, before it is reported: does this server still hold its home? A record that a
   * successor will not replay must not be reported.
   */
  readonly fence?: () => boolean | Promise<boolean>;
  readonly retry?: Partial<RetryTimes>;
  /** Space for when the disk is full. */
  readonly reserve?: Pick<Reserve, "lend">;
}

const SEGMENT_BYTES = 64 * 1024 * 1024;
/** Some hundred submissions of one task. */
const AHEAD_BYTES = 128 * 1024;

/**
 * Replays what is there, puts it on disk, seals it (rule 1) and opens the journal for writing. It opens even on a full
 * disk: its state is then `full`.
 */
export const openJournal = async (options: JournalOptions, replay: Replay): Promise<Journal> => {
  const { dir, epoch, io = nodeIo, segmentBytes = SEGMENT_BYTES, aheadBytes = AHEAD_BYTES } = options;
  const loaded = await loadJournal(io, dir, replay);
  if (epoch <= loaded.plan.highest.epoch) {
    const detail = `epoch ${epoch} is not newer than epoch ${loaded.plan.highest.epoch} in ${dir}`;
    throw new SlipwayError("internal", { detail });
  }
  const chain = createChain({ io, dir, epoch, segmentBytes, aheadBytes, keepHistory: options.keepHistory }, loaded);
  const gatherer = createGatherer(loaded.lastLsn);
  const durable = createDurable();
  const writing: Writing = { bytes: 0 };
  const stateListeners: ((state: JournalState, detail: JournalStateDetail) => void)[] = [];
  let state: JournalState = "ok";
  let closing: Promise<void> | undefined;

  const setState = (to: JournalState, detail: JournalStateDetail): void => {
    if (state === to || state === "closed") return;
    state = to;
    for (const listener of stateListeners) tell(() => listener(to, detail));
  };

  const retry: Retry = createRetry({ ...defaultRetryTimes, ...options.retry }, dir, {
    full: (error) => setState("full", { reason: (error as Error).message, error, fatal: false }),
    ok: () => setState("ok", { reason: "there is room again", fatal: false }),
    relieve: async () => (await options.reserve?.lend(writing.bytes).catch(() => false)) ?? false,
  });

  const pump = createPump({
    gatherer,
    chain,
    retry,
    durable,
    writing,
    replayed: loaded.lastLsn,
    dir,
    fence: options.fence,
    isClosed: () => state === "closed",
    onFailure: (error) => setState("closed", { reason: (error as Error).message, error, fatal: true }),
  });

  /** Why nothing is written any more. */
  const refusal = (): unknown =>
    pump.failure ?? new SlipwayError("journal-failed", { home: dir, detail: "it is closed" });

  const refuseIfClosed = (): void => {
    if (closing !== undefined || pump.failure !== undefined) throw refusal();
  };

  const finish = async (): Promise<void> => {
    retry.last();
    await pump.drain();
    // Without END the next start reads the tail more carefully; nothing is lost.
    if (pump.failure === undefined && state === "ok") await chain.end().catch(() => undefined);
    await chain.close();
    setState("closed", { reason: "closed", fatal: false });
    durable.giveUp(refusal());
    if (pump.failure !== undefined) throw pump.failure;
  };

  try {
    await retry.run(() => chain.ensure(), { wait: false });
    durable.reached(loaded.lastLsn);
  } catch (error) {
    if (!isFull(error)) throw error;
    pump.openLater();
  }

  return {
    append: (type, payload) => {
      refuseIfClosed();
      if (!(type >= 0 && type < FIRST_INTERNAL_TYPE)) throw new RangeError(`journal record type ${type}`);
      const lsn = gatherer.add(type, payload);
      pump.wake();
      return lsn;
    },
    get appended() {
      return gatherer.lastLsn;
    },
    get durable() {
      return durable.lsn;
    },
    get pendingBytes() {
      return pump.pendingBytes;
    },
    beforeCommit: pump.beforeCommit,
    onDurable: durable.onReached,
    whenDurable: (lsn) => {
      if (lsn <= durable.lsn) return Promise.resolve();
      return pump.failure !== undefined || state === "closed" ? Promise.reject(refusal()) : durable.when(lsn);
    },
    get state() {
      return state;
    },
    onState: (listener) => void stateListeners.push(listener),
    retryNow: retry.now,
    roll: async () => {
      refuseIfClosed();
      return pump.roll();
    },
    snapshotWritten: (snapshot) => chain.release(snapshot),
    get bytesSinceSnapshot() {
      return chain.bytes + gatherer.bytes + writing.bytes;
    },
    sizeOnDisk: async () => {
      let sum = 0;
      for (const name of await io.readdir(dir)) {
        if (parseName(name) !== undefined) sum += await io.size(join(dir, name)).catch(() => 0);
      }
      return sum;
    },
    close: () => {
      closing ??= finish();
      return closing;
    },
    warnings: loaded.warnings,
  };
};
