import { setImmediate as turn } from "node:timers/promises";
import { SlipwayError } from "../errors.ts";
import type { Chain } from "./chain.ts";
import { type Durable, tell } from "./durable.ts";
import type { Batch, Gatherer } from "./gather.ts";
import type { SegmentMark } from "./names.ts";
import type { Retry } from "./retry.ts";

/**
 * Group commit: writes what was gathered to disk, one batch after the other. What arrives during a commit shares the
 * next one.
 *
 *   idle ── something was appended ──► scheduled ── end of this turn ──► running ── nothing is left ──► idle
 *                                                                          └── an error ──► failed, for good
 */
export interface Pump {
  /** Something was appended. */
  wake(): void;
  /** Opens the first segment when there is space; until then what is appended waits. */
  openLater(): void;
  /** Ends the current segment with what has been appended so far. */
  roll(): Promise<{ upTo: SegmentMark }>;
  /** Called before a commit collects what was appended: what the listener appends joins it. */
  beforeCommit(listener: () => void): void;
  /** Bytes taken but not yet on disk. */
  readonly pendingBytes: number;
  /** Why nothing will ever be written again, or undefined. */
  readonly failure: unknown;
  /** Commits what is pending; resolves when nothing is under way. */
  drain(): Promise<void>;
}

/** Bytes of the batch that is being written. */
export interface Writing {
  bytes: number;
}

export interface PumpOptions {
  readonly gatherer: Gatherer;
  readonly chain: Chain;
  readonly retry: Retry;
  readonly durable: Durable;
  readonly writing: Writing;
  /** The last record that was replayed: durable once a segment of ours follows it. */
  readonly replayed: number;
  readonly dir: string;
  /** Called before a commit is reported: does this server still hold its home? */
  readonly fence: (() => boolean | Promise<boolean>) | undefined;
  readonly isClosed: () => boolean;
  readonly onFailure: (error: unknown) => void;
}

interface Work {
  readonly batch: Batch;
  readonly rolled?: { resolve(value: { upTo: SegmentMark }): void; reject(error: unknown): void };
}

const NOTHING: Batch = { chunks: [], bytes: 0, count: 0, lastLsn: 0 };

export const createPump = (options: PumpOptions): Pump => {
  const { gatherer, chain, retry, durable, writing, replayed, fence } = options;
  const listeners: (() => void)[] = [];
  const queue: Work[] = [];
  let running: Promise<void> | undefined;
  let scheduled = false;
  let failure: unknown;

  const settle = async ({ batch, rolled }: Work): Promise<void> => {
    if (batch.count > 0) {
      await retry.run(() => chain.commit(batch));
      if (fence !== undefined && !(await fence()))
        throw new SlipwayError("journal-failed", {
          home: options.dir,
          detail: "this server no longer holds its home",
        });
      gatherer.recycle(batch);
      durable.reached(batch.lastLsn);
    } else {
      await retry.run(() => chain.ensure());
      if (durable.lsn < replayed) durable.reached(replayed);
    }
    if (rolled === undefined) return;
    const upTo = await retry.run(() => chain.seal());
    await retry.run(() => chain.ensure());
    rolled.resolve({ upTo });
  };

  const fail = (error: unknown, rolled: Work["rolled"]): void => {
    failure = error;
    for (const lost of [rolled, ...queue.map((work) => work.rolled)]) lost?.reject(error);
    queue.length = 0;
    durable.giveUp(error);
    options.onFailure(error);
  };

  const take = (): Work | undefined => {
    if (queue.length > 0) return queue.shift();
    if (gatherer.count === 0) return undefined;
    for (const listener of listeners) tell(listener);
    return { batch: gatherer.take() };
  };

  const run = async (first: Work | undefined): Promise<void> => {
    let work = first;
    for (;;) {
      if (work === undefined) {
        // whoever waited for the last commit goes first, and what that leads to follows at once
        await turn();
        work = take();
      }
      if (work === undefined) {
        await chain.rest();
        work = take();
        if (work === undefined) return;
      }
      writing.bytes = work.batch.bytes;
      try {
        await settle(work);
      } catch (error) {
        fail(error, work.rolled);
        return;
      } finally {
        writing.bytes = 0;
      }
      work = take();
    }
  };

  const start = (first: Work | undefined): void => {
    running = run(first).finally(() => {
      running = undefined;
      if (failure === undefined && (queue.length > 0 || gatherer.count > 0)) start(take());
    });
  };

  const wake = (): void => {
    if (scheduled || running !== undefined) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      if (running === undefined && failure === undefined && !options.isClosed()) start(take());
    });
  };

  return {
    wake,
    openLater: () => start({ batch: NOTHING }),
    roll: () =>
      new Promise((resolve, reject) => {
        queue.push({ batch: gatherer.take(), rolled: { resolve, reject } });
        wake();
      }),
    beforeCommit: (listener) => void listeners.push(listener),
    get pendingBytes() {
      return queue.reduce((sum, work) => sum + work.batch.bytes, gatherer.bytes + writing.bytes);
    },
    get failure() {
      return failure;
    },
    drain: async () => {
      if (running === undefined && failure === undefined) start(take());
      for (let busy = running; busy !== undefined; busy = running) await busy;
    },
  };
};
