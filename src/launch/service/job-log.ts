import { readFile } from "node:fs/promises";
import { bytesOf, joined, type KeptOutput, sizeOf, type StreamName } from "./kept-output.ts";
import type { OutputFiles, ReadSource } from "./output.ts";
import { openUsersFile } from "./users-files.ts";

/**
 * Reads a launch's output: what ranks send while they run, rank by rank; if none sends, the job's own file as it grows;
 * and at the end what only that file has.
 */

/** How much of one rank's log is held in memory for a reader. */
const MOST_AT_ONCE = 1024 * 1024;
/** Logs that are compared line by line; longer ones would cost too much memory. */
const MOST_COMPARED = 16 * 1024 * 1024;

/** Lines that only the job's own file has: the manager's messages, and what a rank could not send. */
const onlyInFile = async (kept: KeptOutput, stream: StreamName): Promise<Buffer> => {
  const lines = (await readFile(kept.path(stream), "latin1")).split(/(?<=\n)/);
  const sent = new Map<string, number>();
  for (const key of kept.rankKeys(stream))
    for (const line of (await readFile(kept.path(key), "latin1")).split("\n"))
      sent.set(line, (sent.get(line) ?? 0) + 1);
  const missing = lines.filter((line) => {
    const text = line.replace(/\n$/, "");
    const left = sent.get(text) ?? 0;
    if (left > 0) sent.set(text, left - 1);
    return left === 0;
  });
  return Buffer.from(missing.join(""), "latin1");
};

/** How far a reader has come: in the ranks' files, or in the job's own; never in both. */
interface Position {
  readonly ranks: Map<string, number>;
  file: number;
}

/**
 * What ranks have sent since. The output of a single rank is passed on as it comes; that of several by whole lines, so
 * that lines stay intact.
 */
async function* newOfRanks(
  kept: KeptOutput,
  keys: readonly string[],
  at: Position,
  mayGrow: boolean,
): AsyncGenerator<Buffer> {
  for (const key of keys) {
    for (;;) {
      const from = at.ranks.get(key) ?? 0;
      const to = Math.min(kept.sizes.get(key)!, from + MOST_AT_ONCE);
      if (to === from) break;
      let text = await joined(bytesOf(kept.path(key), from, to));
      const lines = text.lastIndexOf(10) + 1;
      const mayWait = keys.length > 1 && mayGrow && (lines > 0 || to - from < MOST_AT_ONCE);
      if (mayWait) text = text.subarray(0, lines);
      at.ranks.set(key, from + text.length);
      if (text.length === 0) break;
      yield text;
    }
  }
}

/** What the job's own file has gained since. */
async function* newOfFile(path: string, at: Position): AsyncGenerator<Buffer> {
  const theirs = await openUsersFile(path);
  try {
    for await (const chunk of theirs?.bytes(at.file, theirs.size) ?? []) {
      at.file += chunk.length;
      yield chunk;
    }
  } catch {
    // we may not read it while the job lives
  } finally {
    await theirs?.close();
  }
}

export async function* readJobLog(
  kept: KeptOutput,
  stream: StreamName,
  { files, follow, signal, isOver }: ReadSource,
): AsyncGenerator<Uint8Array> {
  const at: Position = { ranks: new Map(), file: 0 };
  for (;;) {
    const over = isOver();
    const isCollected = kept.collected.has(stream);
    if (over && at.ranks.size === 0 && isCollected) {
      yield* bytesOf(kept.path(stream), at.file);
      return;
    }
    let moved = false;
    const keys = at.file > 0 ? [] : kept.rankKeys(stream);
    const news = keys.length > 0 ? newOfRanks(kept, keys, at, follow && !over) : newOfFile(files[stream], at);
    for await (const chunk of news) {
      moved = true;
      yield chunk;
    }
    if (signal.aborted) return;
    if (over) {
      const compared = Math.max(kept.total, kept.collected.get(stream) ?? 0);
      if (at.ranks.size === 0 || !isCollected || compared >= MOST_COMPARED) return;
      const rest = await onlyInFile(kept, stream);
      if (rest.length > 0) yield rest;
      return;
    }
    if (!follow) return;
    if (!moved) await kept.changed(signal);
  }
}

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

/** Beginning and end of what is known of a stream, for an excerpt. */
export const readJobLogEnds = async (
  kept: KeptOutput,
  stream: StreamName,
  files: OutputFiles,
  bytes: number,
): Promise<string> => {
  const isCollected = kept.collected.has(stream);
  for (const path of isCollected ? [kept.path(stream)] : kept.rankKeys(stream).map(kept.path)) {
    const size = (await sizeOf(path)) ?? 0;
    if (size > 0) return endsOf((from, to) => bytesOf(path, from, to), size, bytes).catch(() => "");
  }
  const theirs = isCollected ? undefined : await openUsersFile(files[stream]);
  if (theirs === undefined) return "";
  try {
    return await endsOf((from, to) => theirs.bytes(from, to), theirs.size, bytes);
  } catch {
    // we may not read it
    return "";
  } finally {
    await theirs.close();
  }
};
