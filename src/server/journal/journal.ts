import { join } from "node:path";
import { SlipwayError } from "../../errors.ts";
import { createChain } from "./chain.ts";
import { FIRST_INTERNAL_TYPE } from "./format.ts";
import { type Batch, createGatherer } from "./gather.ts";
import { type JournalIo, isFull, nodeIo } from "./io.ts";
import { type SegmentMark, parseName } from "./names.ts";
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
  /** Bytes taken that are not on disk yet; they grow without bound while the state is `full`. */
  readonly pendingBytes: number;
  /** Called before a group commit takes what was appended: what the listener appends is part of it. */
  beforeCommit(listener: () => void): void;
  /** Called after each group commit. */
  onDurable(listener: (lsn: number) => void): void;
  /** Rejects if the journal fails or closes before. */
  whenDurable(lsn: number): Promise<void>;
  readonly state: JournalState;
  onState(listener: (state: JournalState, detail: JournalStateDetail) => void): void;
  /** Tries a full disk again at once. */
  retryNow(): void;
  /**
   * Ends the current segment with the last record appended before this call, and starts a new one. The state that a
   * snapshot of `upTo` holds must be taken at the moment of the call, not when the promise resolves: what is appended in
   * between is in the new segment, and replays on top.
   */
  roll(): Promise<{ upTo: SegmentMark }>;
  /** Deletes what the snapshot covers, unless history is kept, after checking that it is whole. */
  snapshotWritten(snapshot: SnapshotInfo): Promise<void>;
  readonly bytesSinceSnapshot: number;
  sizeOnDisk(): Promise<number>;
  /** Commits what was appended and closes. Rejects if that could not be written; even then the files are closed. */
  close(): Promise<void>;
  /** What opening found worth telling, such as a torn tail that was cut. */
  readonly warnings: readonly string[];
}

export interface JournalOptions {
  readonly dir: string;
  /** Higher than that of every server before. */
  readonly epoch: number;
  readonly io?: JournalIo;
  /** Keeps all segments and snapshots, whatever newer snapshots cover. */
  readonly keepHistory?: boolean;
  /** A segment ends with the commit that reaches this size. */
  readonly segmentBytes?: number;
  /**
   * Asked after each group commit, before it is reported: does this server still hold its home? Not to report a record
   * that a successor will not replay.
   */
  readonly fence?: () => boolean | Promise<boolean>;
  readonly retry?: Partial<RetryTimes>;
  /** Room for when the disk is full. */
  readonly reserve?: Pick<Reserve, "lend">;
}

interface Work {
  readonly batch: Batch;
  readonly rolled?: { resolve(value: { upTo: SegmentMark }): void; reject(error: unknown): void };
}

const SEGMENT_BYTES = 64 * 1024 * 1024;
const NOTHING: Batch = { chunks: [], bytes: 0, count: 0, lastLsn: 0 };

/** A listener's error is nobody's here to handle, but must neither stop the journal nor vanish. */
const tell = (call: () => void): void => {
  try {
    call();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
};

/**
 * Replays what is there, puts it on disk, seals it (rule 1) and opens the journal for writing. A full disk does not keep it from opening:
 * its state is then `full`.
 */
export const openJournal = async (options: JournalOptions, replay: Replay): Promise<Journal> => {
  const { dir, epoch, io = nodeIo, segmentBytes = SEGMENT_BYTES, fence } = options;
  const loaded = await loadJournal(io, dir, replay);
  if (epoch <= loaded.plan.highest.epoch) {
    const detail = `epoch ${epoch} is not newer than epoch ${loaded.plan.highest.epoch} in ${dir}`;
    throw new SlipwayError("internal", { detail });
  }
  const chain = createChain({ io, dir, epoch, segmentBytes, keepHistory: options.keepHistory }, loaded);
  const gatherer = createGatherer(loaded.lastLsn);
  const commitListeners: (() => void)[] = [];
  const durableListeners: ((lsn: number) => void)[] = [];
  const stateListeners: ((state: JournalState, detail: JournalStateDetail) => void)[] = [];
  let waiters: { lsn: number; resolve(): void; reject(error: unknown): void }[] = [];
  const queue: Work[] = [];
  /** What was replayed counts when it is on disk, which the first segment waits for. */
  let durable = 0;
  let state: JournalState = "ok";
  let underWay = 0;
  let running: Promise<void> | undefined;
  let scheduled = false;
  let closing: Promise<void> | undefined;
  let failure: unknown;

  const setState = (to: JournalState, detail: JournalStateDetail): void => {
    if (state === to || state === "closed") return;
    state = to;
    for (const listener of stateListeners) tell(() => listener(to, detail));
  };

  const retry: Retry = createRetry({ ...defaultRetryTimes, ...options.retry }, dir, {
    full: (error) => setState("full", { reason: (error as Error).message, error, fatal: false }),
    ok: () => setState("ok", { reason: "there is room again", fatal: false }),
    relieve: async () => (await options.reserve?.lend(underWay).catch(() => false)) ?? false,
  });

  const publish = (lsn: number): void => {
    durable = lsn;
    for (const listener of durableListeners) tell(() => listener(lsn));
    if (waiters.length === 0) return;
    const ready = waiters.filter((waiter) => waiter.lsn <= lsn);
    waiters = waiters.filter((waiter) => waiter.lsn > lsn);
    for (const waiter of ready) waiter.resolve();
  };

  const settle = async ({ batch, rolled }: Work): Promise<void> => {
    if (batch.count > 0) {
      await retry.run(() => chain.commit(batch));
      if (fence !== undefined && !(await fence())) {
        throw new SlipwayError("journal-failed", { home: dir, detail: "this server does not hold its home any more" });
      }
      gatherer.recycle(batch);
      publish(batch.lastLsn);
    } else {
      await retry.run(() => chain.ensure());
      if (durable < loaded.lastLsn) publish(loaded.lastLsn);
    }
    if (rolled === undefined) return;
    const upTo = await retry.run(() => chain.seal());
    await retry.run(() => chain.ensure());
    rolled.resolve({ upTo });
  };

  const fail = (error: unknown, rolled: Work["rolled"]): void => {
    failure = error;
    const lost = [rolled, ...queue.map((work) => work.rolled), ...waiters];
    queue.length = 0;
    waiters = [];
    for (const one of lost) one?.reject(error);
    setState("closed", { reason: (error as Error).message, error, fatal: true });
  };

  const take = (): Work | undefined => {
    if (queue.length > 0) return queue.shift();
    if (gatherer.count === 0) return undefined;
    for (const listener of commitListeners) tell(listener);
    return { batch: gatherer.take() };
  };

  /** Commits one batch after the other until nothing is left; what arrives during a commit shares the next one. */
  const pump = async (first: Work | undefined): Promise<void> => {
    let work = first;
    for (;;) {
      if (work === undefined) {
        await chain.note();
        work = take();
        if (work === undefined) return;
      }
      underWay = work.batch.bytes;
      try {
        await settle(work);
      } catch (error) {
        fail(error, work.rolled);
        return;
      } finally {
        underWay = 0;
      }
      work = take();
    }
  };

  const start = (first: Work | undefined): void => {
    running = pump(first).finally(() => {
      running = undefined;
      if (failure === undefined && (queue.length > 0 || gatherer.count > 0)) start(take());
    });
  };

  const schedule = (): void => {
    if (scheduled || running !== undefined) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      if (running === undefined && failure === undefined && state !== "closed") start(take());
    });
  };

  const refuseIfClosed = (): void => {
    if (failure !== undefined) throw failure;
    if (closing !== undefined) throw new SlipwayError("journal-failed", { home: dir, detail: "it is closed" });
  };

  const finish = async (): Promise<void> => {
    retry.last();
    if (running === undefined && failure === undefined) start(take());
    for (let busy = running; busy !== undefined; busy = running) await busy;
    // Without END the next start reads the tail more carefully; nothing is lost.
    if (failure === undefined && state === "ok") await chain.end().catch(() => undefined);
    await chain.close();
    setState("closed", { reason: "closed", fatal: false });
    for (const waiter of waiters)
      waiter.reject(new SlipwayError("journal-failed", { home: dir, detail: "it is closed" }));
    waiters = [];
    if (failure !== undefined) throw failure;
  };

  try {
    await retry.run(() => chain.ensure(), { wait: false });
    durable = loaded.lastLsn;
  } catch (error) {
    if (!isFull(error)) throw error;
    start({ batch: NOTHING });
  }

  return {
    append: (type, payload) => {
      if (closing !== undefined || failure !== undefined) refuseIfClosed();
      if (!(type >= 0 && type < FIRST_INTERNAL_TYPE)) throw new RangeError(`journal record type ${type}`);
      const lsn = gatherer.add(type, payload);
      if (!scheduled && running === undefined) schedule();
      return lsn;
    },
    get appended() {
      return gatherer.lastLsn;
    },
    get durable() {
      return durable;
    },
    get pendingBytes() {
      return queue.reduce((sum, work) => sum + work.batch.bytes, gatherer.bytes + underWay);
    },
    beforeCommit: (listener) => void commitListeners.push(listener),
    onDurable: (listener) => void durableListeners.push(listener),
    whenDurable: (lsn) => {
      if (lsn <= durable) return Promise.resolve();
      return new Promise((resolve, reject) => {
        if (failure !== undefined || state === "closed") refuseIfClosed();
        waiters.push({ lsn, resolve, reject });
      });
    },
    get state() {
      return state;
    },
    onState: (listener) => void stateListeners.push(listener),
    retryNow: retry.now,
    roll: () =>
      new Promise((resolve, reject) => {
        refuseIfClosed();
        queue.push({ batch: gatherer.take(), rolled: { resolve, reject } });
        schedule();
      }),
    snapshotWritten: (snapshot) => chain.release(snapshot),
    get bytesSinceSnapshot() {
      return chain.bytes + gatherer.bytes + underWay;
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
