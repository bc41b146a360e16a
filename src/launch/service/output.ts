import { constants, mkdir, open, rm } from "node:fs/promises";
import { SlipwayError } from "../../errors.ts";
import { formatSize } from "../../core/quantities.ts";
import { createKeptOutputs, type KeptOutput, type StreamName } from "./kept-output.ts";
import { readJobLogEnds, readJobLog } from "./job-log.ts";
import { type UsersFile, openUsersFile } from "./users-files.ts";
import type { LaunchId } from "../../core/ids.ts";

/**
 * What jobs wrote, kept in the home: pieces that ranks send while they run, one file per rank and stream, and at the
 * end the job's own output files, which hold everything. A rank's file is exactly as long as what the server has of it,
 * so a piece sent twice is written once, even across a restart. Files in the home are read by their path; the job's own
 * files belong to its user, and only users-files.ts reads them.
 */

export type OutputFiles = Readonly<Record<StreamName, string>>;

const MOST_BYTES = 256 * 1024 * 1024;
const MOST_PIECE = 4 * 1024 * 1024;
const MOST_RANKS = 100_000;
/** A rank that has sent nothing for this long is no longer live. */
const LIVE_MS = 30_000;

export interface OutputStore {
  receive(
    launch: LaunchId,
    piece: { stream: StreamName; rank: number; offset: number },
    body: AsyncIterable<Uint8Array>,
  ): Promise<{ size: number }>;
  /** Copies the job's own files into the home; leaves out one that it cannot read. */
  collect(launch: LaunchId, files: OutputFiles): Promise<void>;
  /** The end of what is known of a stream, for an excerpt. */
  tail(launch: LaunchId, stream: StreamName, files: OutputFiles, bytes: number): Promise<string>;
  sizes(launch: LaunchId): { stdout: number; stderr: number; live: boolean };
  /** Everything so far, and with `follow` what comes until `isOver`. */
  read(launch: LaunchId, stream: StreamName, source: ReadSource): AsyncGenerator<Uint8Array>;
  remove(launch: LaunchId): Promise<void>;
}

export interface ReadSource {
  readonly files: OutputFiles;
  readonly follow: boolean;
  readonly signal: AbortSignal;
  /** The job has ended and its files were collected. */
  readonly isOver: () => boolean;
}

const tooMuch = (what: string, size: number, limit: number): SlipwayError =>
  new SlipwayError("too-large", { what, size: formatSize(size), limit: formatSize(limit) });

const pieceOf = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > MOST_PIECE) throw tooMuch("the piece", length, MOST_PIECE);
    parts.push(part);
  }
  return Buffer.concat(parts);
};

/** Resolves with the size of the rank's file. */
const append = async (kept: KeptOutput, key: string, data: Buffer): Promise<number> => {
  await mkdir(kept.directory, { recursive: true, mode: 0o700 });
  const before = kept.sizes.get(key) ?? 0;
  const file = await open(kept.path(key), constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    // at its place, not at the end: a write that failed halfway may have left bytes there
    for (let at = 0; at < data.length;) at += (await file.write(data, at, data.length - at, before + at)).bytesWritten;
  } finally {
    await file.close();
  }
  const size = before + data.length;
  kept.sizes.set(key, size);
  return size;
};

/** Copies as much of a job's file as is kept; resolves with its size. */
const keep = async (kept: KeptOutput, stream: StreamName, theirs: UsersFile): Promise<number> => {
  await mkdir(kept.directory, { recursive: true, mode: 0o700 });
  const file = await open(kept.path(stream), "w", 0o600);
  try {
    let at = 0;
    for await (const chunk of theirs.bytes(0, Math.min(theirs.size, MOST_BYTES))) {
      await file.write(chunk);
      at += chunk.length;
    }
    if (theirs.size > MOST_BYTES) await file.write(`\n[the rest, ${formatSize(theirs.size - at)}, was not kept]\n`);
    return at;
  } finally {
    await file.close();
  }
};

export const createOutputStore = (root: string): OutputStore => {
  const outputs = createKeptOutputs(root);
  return {
    receive: async (launch, { stream, rank, offset }, body) => {
      if (rank >= MOST_RANKS) throw new SlipwayError("bad-request", { detail: "no job has that many ranks" });
      const piece = await pieceOf(body);
      const kept = await outputs.of(launch);
      const key = `${stream}.${rank}`;
      return kept.inTurn(async () => {
        const size = kept.sizes.get(key) ?? 0;
        kept.lastPiece = performance.now();
        // a hole is not filled: the answer tells the sender where to continue
        if (offset > size || offset + piece.length <= size) return { size };
        if (kept.total + piece.length > MOST_BYTES) throw tooMuch("the log", kept.total + piece.length, MOST_BYTES);
        const now = await append(kept, key, piece.subarray(size - offset));
        kept.wake();
        return { size: now };
      });
    },
    collect: async (launch, files) => {
      const kept = await outputs.of(launch);
      await kept.inTurn(async () => {
        for (const stream of ["stdout", "stderr"] as const) {
          const theirs = await openUsersFile(files[stream]);
          if (theirs === undefined) continue;
          try {
            kept.collected.set(stream, await keep(kept, stream, theirs));
          } catch {
            // where we may not read the file, what the ranks sent stays
            kept.collected.delete(stream);
            await rm(kept.path(stream), { force: true });
          } finally {
            await theirs.close();
          }
        }
      });
      kept.wake();
    },
    tail: async (launch, stream, files, bytes) => readJobLogEnds(await outputs.of(launch), stream, files, bytes),
    sizes: (launch) => {
      const kept = outputs.known(launch);
      if (kept === undefined) return { stdout: 0, stderr: 0, live: false };
      const of = (stream: StreamName): number =>
        kept.collected.get(stream) ?? kept.rankKeys(stream).reduce((sum, key) => sum + kept.sizes.get(key)!, 0);
      return { stdout: of("stdout"), stderr: of("stderr"), live: performance.now() - kept.lastPiece < LIVE_MS };
    },
    async *read(launch, stream, source) {
      yield* readJobLog(await outputs.of(launch), stream, source);
    },
    remove: (launch) => outputs.remove(launch),
  };
};
