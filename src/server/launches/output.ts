import { createReadStream } from "node:fs";
import { constants, mkdir, open, readFile, readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SlipwayError } from "../../errors.ts";
import { formatSize } from "../../core/quantities.ts";
import { type UsersFile, openUsersFile } from "./users-files.ts";

/**
 * What jobs wrote, kept in the home: pieces that ranks send while they run, one file per rank and stream, and at the
 * end the job's own output files, which hold everything. A rank's file is as long as what the server has of it, so a
 * piece sent twice is written once, also over a restart. What lies in the home is read by its path; the job's own files
 * belong to its user, and are read as users-files.ts does.
 */

export type StreamName = "stdout" | "stderr";
export type OutputFiles = Readonly<Record<StreamName, string>>;

const MOST_BYTES = 256 * 1024 * 1024;
const MOST_RANKS = 100_000;
/** A rank that sent nothing for so long is no longer live. */
const LIVE_MS = 30_000;
/** Of one rank's log that is held in memory for a reader. */
const MOST_AT_ONCE = 1024 * 1024;
/** Logs that are compared line by line; longer ones would cost too much memory. */
const MOST_COMPARED = 16 * 1024 * 1024;

export interface OutputStore {
  receive(
    launch: number,
    piece: { stream: StreamName; rank: number; offset: number },
    body: AsyncIterable<Uint8Array>,
  ): Promise<{ size: number }>;
  /** Copies the job's own files into the home; one that cannot be read is left out. */
  collect(launch: number, files: OutputFiles): Promise<void>;
  /** The end of what is known of a stream, for an excerpt. */
  tail(launch: number, stream: StreamName, files: OutputFiles, bytes: number): Promise<string>;
  sizes(launch: number): { stdout: number; stderr: number; live: boolean };
  /** Everything so far, and with `follow` what comes until `isOver`. */
  read(launch: number, stream: StreamName, source: ReadSource): AsyncGenerator<Uint8Array>;
  remove(launch: number): Promise<void>;
}

export interface ReadSource {
  readonly files: OutputFiles;
  readonly follow: boolean;
  readonly signal: AbortSignal;
  /** The job has ended and its files were collected. */
  readonly isOver: () => boolean;
}

interface Known {
  /** `stream.rank` → bytes. */
  readonly sizes: Map<string, number>;
  readonly collected: Map<StreamName, number>;
  lastPiece: number;
  writing: Promise<unknown>;
  readonly waiters: Set<() => void>;
}

/** Of a file in the home. */
const sizeOf = async (path: string): Promise<number | undefined> => {
  try {
    return (await stat(path)).size;
  } catch {
    // not there, or not for us
    return undefined;
  }
};

async function* bytesOf(path: string, from: number, to?: number): AsyncGenerator<Buffer> {
  if (to !== undefined && to <= from) return;
  yield* createReadStream(path, { start: from, ...(to === undefined ? {} : { end: to - 1 }) }) as AsyncIterable<Buffer>;
}

const joined = async (chunks: AsyncIterable<Buffer>): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of chunks) parts.push(part);
  return Buffer.concat(parts);
};

/** The first and the last bytes of a file. */
const endsOf = async (
  read: (from: number, to: number) => AsyncIterable<Buffer>,
  size: number,
  bytes: number,
): Promise<string> => {
  const head = await joined(read(0, Math.min(size, bytes)));
  const rest = await joined(read(Math.max(bytes, size - bytes), size));
  return Buffer.concat([head, rest]).toString("utf8");
};

export const createOutputStore = (root: string): OutputStore => {
  const launches = new Map<number, Known>();
  const dirOf = (launch: number): string => join(root, String(launch));
  const fileOf = (launch: number, key: string): string => join(dirOf(launch), key);

  const load = async (launch: number): Promise<Known> => {
    const found = launches.get(launch);
    if (found !== undefined) return found;
    const known: Known = {
      sizes: new Map(),
      collected: new Map(),
      lastPiece: -Infinity,
      writing: Promise.resolve(),
      waiters: new Set(),
    };
    for (const name of await readdir(dirOf(launch)).catch(() => [])) {
      const size = (await sizeOf(fileOf(launch, name))) ?? 0;
      if (name === "stdout" || name === "stderr") known.collected.set(name, size);
      else if (/^(stdout|stderr)\.\d+$/.test(name)) known.sizes.set(name, size);
    }
    // of two that looked at once, the first one's is used by both
    const first = launches.get(launch) ?? known;
    launches.set(launch, first);
    return first;
  };

  /** One writer at a time for each launch. */
  const inTurn = <T>(known: Known, action: () => Promise<T>): Promise<T> => {
    const result = known.writing.then(action);
    known.writing = result.catch(() => undefined);
    return result;
  };

  const wake = (known: Known): void => {
    for (const waiter of known.waiters) waiter();
  };

  const total = (known: Known): number => [...known.sizes.values()].reduce((sum, size) => sum + size, 0);

  const append = async (launch: number, known: Known, key: string, data: Buffer): Promise<number> => {
    await mkdir(dirOf(launch), { recursive: true, mode: 0o700 });
    const before = known.sizes.get(key) ?? 0;
    const file = await open(fileOf(launch, key), constants.O_WRONLY | constants.O_CREAT, 0o600);
    try {
      // at its place, not at the end: a write that failed half way may have left bytes there
      for (let at = 0; at < data.length;)
        at += (await file.write(data, at, data.length - at, before + at)).bytesWritten;
    } finally {
      await file.close();
    }
    const size = before + data.length;
    known.sizes.set(key, size);
    return size;
  };

  const tooMuch = (what: string): SlipwayError =>
    new SlipwayError("too-large", { what, size: "more", limit: formatSize(MOST_BYTES) });

  const receive: OutputStore["receive"] = async (launch, { stream, rank, offset }, body) => {
    if (rank >= MOST_RANKS) throw new SlipwayError("bad-request", { detail: "no job has so many ranks" });
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of body) {
      length += part.length;
      if (length > 4 * 1024 * 1024) throw tooMuch("the piece");
      parts.push(part);
    }
    const known = await load(launch);
    const key = `${stream}.${rank}`;
    return inTurn(known, async () => {
      const size = known.sizes.get(key) ?? 0;
      known.lastPiece = performance.now();
      // a hole is not filled with nothing: the sender is told where to go on
      if (offset > size || offset + length <= size) return { size };
      if (total(known) + length > MOST_BYTES) throw tooMuch("the log");
      const data = Buffer.concat(parts).subarray(size - offset);
      const now = await append(launch, known, key, data);
      wake(known);
      return { size: now };
    });
  };

  /** Copies as much of a job's file as is kept; resolves with its size. */
  const keep = async (path: string, theirs: UsersFile): Promise<number> => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, "w", 0o600);
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

  const collect: OutputStore["collect"] = async (launch, files) => {
    const known = await load(launch);
    await inTurn(known, async () => {
      for (const stream of ["stdout", "stderr"] as const) {
        const theirs = await openUsersFile(files[stream]);
        if (theirs === undefined) continue;
        try {
          const size = await keep(fileOf(launch, stream), theirs);
          known.collected.set(stream, size);
        } catch {
          // what is not for us to read stays what the ranks sent
          known.collected.delete(stream);
          await rm(fileOf(launch, stream), { force: true });
        } finally {
          await theirs.close();
        }
      }
    });
    wake(known);
  };

  const rankKeys = (known: Known, stream: StreamName): string[] =>
    [...known.sizes.keys()]
      .filter((key) => key.startsWith(`${stream}.`))
      .sort((a, b) => Number(a.split(".")[1]) - Number(b.split(".")[1]));

  const changed = (known: Known, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        known.waiters.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, 500);
      known.waiters.add(done);
      signal.addEventListener("abort", done, { once: true });
    });

  /** Lines that only the job's own file has: the manager's messages, and what a rank could not send. */
  const onlyInFile = async (launch: number, known: Known, stream: StreamName): Promise<Buffer> => {
    const lines = (await readFile(fileOf(launch, stream), "latin1")).split(/(?<=\n)/);
    const sent = new Map<string, number>();
    for (const key of rankKeys(known, stream))
      for (const line of (await readFile(fileOf(launch, key), "latin1")).split("\n"))
        sent.set(line, (sent.get(line) ?? 0) + 1);
    const missing = lines.filter((line) => {
      const text = line.replace(/\n$/, "");
      const left = sent.get(text) ?? 0;
      if (left > 0) sent.set(text, left - 1);
      return left === 0;
    });
    return Buffer.from(missing.join(""), "latin1");
  };

  async function* read(launch: number, stream: StreamName, source: ReadSource): AsyncGenerator<Uint8Array> {
    const known = await load(launch);
    const at = new Map<string, number>();
    let fileAt = 0;
    for (;;) {
      const over = source.isOver();
      const isCollected = known.collected.has(stream);
      if (over && at.size === 0 && isCollected) {
        yield* bytesOf(fileOf(launch, stream), fileAt);
        return;
      }
      let moved = false;
      // one file alone is passed on as it comes; several by whole lines, so that they are not torn
      const keys = fileAt > 0 ? [] : rankKeys(known, stream);
      for (const key of keys) {
        for (;;) {
          const from = at.get(key) ?? 0;
          const to = Math.min(known.sizes.get(key)!, from + MOST_AT_ONCE);
          if (to === from) break;
          let text = await joined(bytesOf(fileOf(launch, key), from, to));
          const lines = text.lastIndexOf(10) + 1;
          const mayWait = keys.length > 1 && !over && source.follow && (lines > 0 || to - from < MOST_AT_ONCE);
          if (mayWait) text = text.subarray(0, lines);
          at.set(key, from + text.length);
          if (text.length === 0) break;
          moved = true;
          yield text;
        }
      }
      if (keys.length === 0) {
        const theirs = await openUsersFile(source.files[stream]);
        try {
          for await (const chunk of theirs?.bytes(fileAt, theirs.size) ?? []) {
            fileAt += chunk.length;
            moved = true;
            yield chunk;
          }
        } catch {
          // not for us to read while the job lives
        } finally {
          await theirs?.close();
        }
      }
      if (source.signal.aborted) return;
      if (over) {
        const compared = Math.max(total(known), known.collected.get(stream) ?? 0);
        if (at.size > 0 && isCollected && compared < MOST_COMPARED) {
          const rest = await onlyInFile(launch, known, stream);
          if (rest.length > 0) yield rest;
        }
        return;
      }
      if (!source.follow) return;
      if (!moved) await changed(known, source.signal);
    }
  }

  return {
    receive,
    collect,
    tail: async (launch, stream, files, bytes) => {
      const known = await load(launch);
      const paths = known.collected.has(stream)
        ? [fileOf(launch, stream)]
        : rankKeys(known, stream).map((key) => fileOf(launch, key));
      for (const path of paths) {
        const size = (await sizeOf(path)) ?? 0;
        if (size > 0) return endsOf((from, to) => bytesOf(path, from, to), size, bytes).catch(() => "");
      }
      const theirs = known.collected.has(stream) ? undefined : await openUsersFile(files[stream]);
      if (theirs === undefined) return "";
      try {
        return await endsOf((from, to) => theirs.bytes(from, to), theirs.size, bytes);
      } catch {
        // not for us to read
        return "";
      } finally {
        await theirs.close();
      }
    },
    sizes: (launch) => {
      const known = launches.get(launch);
      const of = (stream: StreamName): number =>
        known === undefined
          ? 0
          : (known.collected.get(stream) ??
            rankKeys(known, stream).reduce((sum, key) => sum + known.sizes.get(key)!, 0));
      const live = known !== undefined && performance.now() - known.lastPiece < LIVE_MS;
      return { stdout: of("stdout"), stderr: of("stderr"), live };
    },
    read,
    remove: async (launch) => {
      launches.delete(launch);
      await rm(dirOf(launch), { recursive: true, force: true });
    },
  };
};
