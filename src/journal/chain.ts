import { join } from "node:path";
import { SlipwayError } from "../errors.ts";
import type { Batch } from "./gather.ts";
import type { JournalIo } from "./io.ts";
import { type SegmentMark, compareIds, highestEpoch, parseName, sameId } from "./names.ts";
import type { Loaded } from "./read.ts";
import { SegmentAbandoned, type SegmentWriter, createSegment } from "./segment.ts";
import { createSettler } from "./settle.ts";
import { type SnapshotInfo, inspectSnapshot } from "./snapshot.ts";
import type { Start } from "./start.ts";

/** The segments of a running journal: the sealed ones that are still needed, and the one being written. */
export interface Chain {
  /** Makes sure that there is a segment to write to, and that the past it names is on disk. */
  ensure(): Promise<void>;
  /** Writes a batch and returns when it is on disk. After an error the caller may try again with the same batch. */
  commit(batch: Batch): Promise<void>;
  /** For a moment in which nothing is to be written. Never throws. */
  rest(): Promise<void>;
  /** Ends the current segment; the next one begins with `ensure` or `commit`. */
  seal(): Promise<SegmentMark>;
  /** Drops what a snapshot covers. */
  release(snapshot: SnapshotInfo): Promise<void>;
  end(): Promise<void>;
  close(): Promise<void>;
  readonly bytes: number;
}

export interface ChainOptions {
  readonly io: JournalIo;
  readonly dir: string;
  readonly epoch: number;
  readonly segmentBytes: number;
  /** Bytes that are prepared behind what a segment holds. */
  readonly aheadBytes: number;
  /** Keep what a snapshot covers. */
  readonly keepHistory?: boolean | undefined;
}

/** Closing cannot lose anything: everything that counts has been synced. */
const closeQuietly = (writer: SegmentWriter): Promise<void> => writer.close().catch(() => undefined);

export const createChain = (
  { io, dir, epoch, segmentBytes, aheadBytes, keepHistory = false }: ChainOptions,
  loaded: Loaded,
): Chain => {
  let writer: SegmentWriter | undefined;
  let base = loaded.base;
  let sealed = [...loaded.chain];
  let lastLsn = loaded.lastLsn;
  let number = loaded.plan.highest.number;
  let ahead = aheadBytes;
  let next: Pick<Start, "why" | "abandoned"> = { why: "open" };
  let settle: (() => Promise<void>) | undefined = createSettler(io, dir, loaded);

  /** Files of a successor mean that this server must stop writing; whatever it wrote would not replay. */
  const refuseIfSuperseded = async (): Promise<void> => {
    const highest = highestEpoch(await io.readdir(dir));
    if (highest <= epoch) return;
    throw new SlipwayError("journal-failed", {
      home: dir,
      detail: `a server of epoch ${highest} has taken over from this one of epoch ${epoch}`,
    });
  };

  const retire = async (why: Start["why"]): Promise<SegmentMark> => {
    const { mark } = writer!;
    await closeQuietly(writer!);
    writer = undefined;
    sealed = [...sealed, mark];
    const { epoch, number, length } = mark;
    next = why === "abandon" ? { why, abandoned: { epoch, number, length } } : { why };
    return mark;
  };

  const ensure = async (): Promise<SegmentWriter> => {
    if (writer !== undefined) return writer;
    await refuseIfSuperseded();
    await settle?.();
    settle = undefined;
    number += 1;
    const start = { ...next, firstLsn: lastLsn + 1, base, chain: sealed, created: new Date().toISOString() };
    writer = await createSegment(io, dir, { epoch, number }, start, ahead);
    return writer;
  };

  const commit = async (batch: Batch): Promise<void> => {
    if (writer !== undefined && writer.length >= segmentBytes) await retire("roll");
    const current = await ensure();
    try {
      await current.commit(batch);
      lastLsn = batch.lastLsn;
    } catch (error) {
      if (!(error instanceof SegmentAbandoned)) throw error;
      await retire("abandon");
      throw error.cause;
    }
  };

  const rest = async (): Promise<void> => {
    try {
      await writer?.rest();
    } catch (error) {
      if (!(error instanceof SegmentAbandoned)) throw error;
      // nobody was waiting: the next commit goes to a new segment, which prepares nothing, or each commit would need another
      ahead = 0;
      await retire("abandon");
    }
  };

  const release = async ({ upTo }: SnapshotInfo): Promise<void> => {
    const found = await inspectSnapshot(io, dir, upTo);
    if (!("upTo" in found))
      throw new SlipwayError("internal", { detail: `the snapshot is not whole: ${found.detail}` });
    const index = sealed.findIndex((mark) => sameId(mark, upTo) && mark.length === upTo.length);
    if (index < 0) throw new SlipwayError("internal", { detail: "the snapshot is not one of this journal" });
    await refuseIfSuperseded();
    base = sealed[index];
    sealed = sealed.slice(index + 1);
    if (keepHistory) return;
    for (const name of await io.readdir(dir)) {
      const id = parseName(name);
      const order = id === undefined ? 1 : compareIds(id, upTo);
      if (order < 0 || (order === 0 && id?.kind === "log")) await io.unlink(join(dir, name));
    }
    await io.syncDir(dir);
  };

  return {
    ensure: async () => {
      await ensure();
    },
    commit,
    rest,
    seal: async () => {
      await ensure();
      return retire("roll");
    },
    release,
    end: async () => writer?.end(),
    close: async () => {
      if (writer !== undefined) await closeQuietly(writer);
    },
    get bytes() {
      return sealed.reduce((sum, mark) => sum + mark.length, writer?.length ?? 0);
    },
  };
};
