import { createReadStream } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { LaunchId } from "../../core/ids.ts";

/** The output of launches that is in the home: one file per rank and stream, and later the job's own two. */

export type StreamName = "stdout" | "stderr";

/** The output of one launch. */
export interface KeptOutput {
  readonly directory: string;
  /** What ranks sent: `stream.rank` → bytes. */
  readonly sizes: Map<string, number>;
  /** The job's own files: bytes. */
  readonly collected: Map<StreamName, number>;
  /** When the last piece came. */
  lastPiece: number;
  readonly total: number;
  /** The file of a rank's stream, or of one of the job's own files. */
  path(key: string): string;
  /** Keys of a stream's files, in the order of the ranks. */
  rankKeys(stream: StreamName): string[];
  /** One writer at a time. */
  inTurn<T>(action: () => Promise<T>): Promise<T>;
  /** Makes readers that wait for more look again. */
  wake(): void;
  /** Resolves when there is more, after a moment, or when the reader is gone. */
  changed(signal: AbortSignal): Promise<void>;
}

export interface KeptOutputs {
  of(launch: LaunchId): Promise<KeptOutput>;
  /** What is known without looking at the disk. */
  known(launch: LaunchId): KeptOutput | undefined;
  remove(launch: LaunchId): Promise<void>;
}

/** A job's own file may grow without notice. */
const LOOK_AGAIN_MS = 500;

/** The size of a file in the home. */
export const sizeOf = async (path: string): Promise<number | undefined> => {
  try {
    return (await stat(path)).size;
  } catch {
    // not there, or not ours to read
    return undefined;
  }
};

export async function* bytesOf(path: string, from: number, to?: number): AsyncGenerator<Buffer> {
  if (to !== undefined && to <= from) return;
  yield* createReadStream(path, { start: from, ...(to === undefined ? {} : { end: to - 1 }) }) as AsyncIterable<Buffer>;
}

export const joined = async (chunks: AsyncIterable<Buffer>): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of chunks) parts.push(part);
  return Buffer.concat(parts);
};

const createKeptOutput = (directory: string): KeptOutput => {
  const sizes = new Map<string, number>();
  const waiters = new Set<() => void>();
  let writing: Promise<unknown> = Promise.resolve();
  return {
    directory,
    sizes,
    collected: new Map(),
    lastPiece: -Infinity,
    get total() {
      return [...sizes.values()].reduce((sum, size) => sum + size, 0);
    },
    path: (key) => join(directory, key),
    rankKeys: (stream) =>
      [...sizes.keys()]
        .filter((key) => key.startsWith(`${stream}.`))
        .sort((a, b) => Number(a.split(".")[1]) - Number(b.split(".")[1])),
    inTurn: (action) => {
      const result = writing.then(action);
      writing = result.catch(() => undefined);
      return result;
    },
    wake: () => {
      for (const waiter of waiters) waiter();
    },
    changed: (signal) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          waiters.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, LOOK_AGAIN_MS);
        waiters.add(done);
        signal.addEventListener("abort", done, { once: true });
      }),
  };
};

export const createKeptOutputs = (root: string): KeptOutputs => {
  const launches = new Map<number, KeptOutput>();
  const directoryOf = (launch: LaunchId): string => join(root, String(launch));
  return {
    of: async (launch) => {
      const found = launches.get(launch);
      if (found !== undefined) return found;
      const kept = createKeptOutput(directoryOf(launch));
      for (const name of await readdir(kept.directory).catch(() => [])) {
        const size = (await sizeOf(kept.path(name))) ?? 0;
        if (name === "stdout" || name === "stderr") kept.collected.set(name, size);
        else if (/^(stdout|stderr)\.\d+$/.test(name)) kept.sizes.set(name, size);
      }
      // if two looked at once, both use what the first one found
      const first = launches.get(launch) ?? kept;
      launches.set(launch, first);
      return first;
    },
    known: (launch) => launches.get(launch),
    remove: async (launch) => {
      launches.delete(launch);
      await rm(directoryOf(launch), { recursive: true, force: true });
    },
  };
};
