import { mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { packr } from "../core/codec.ts";
import { MAX_FRAME, encodeFrame } from "./frames.ts";
import type { Results } from "./messages.ts";

/**
 * Results of an agent that ended without a server (rule 4): written whole, synced, and renamed into place, so that the
 * next server imports all of them or none. Sequence numbers make a second import harmless.
 */

/** Far more than the results of ten million tasks. */
const MAX_SPOOL = 1024 * 1024 * 1024;

export interface Spool {
  readonly uuid: string;
  readonly messages: readonly Results[];
}

const directory = (home: string): string => join(home, "spool");

export const writeSpool = async (home: string, uuid: string, messages: readonly Results[]): Promise<string> => {
  await mkdir(directory(home), { recursive: true, mode: 0o700 });
  const path = join(directory(home), `${uuid}.results`);
  const handle = await open(`${path}.tmp`, "w", 0o600);
  try {
    for (const message of messages) await handle.write(encodeFrame(message));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.tmp`, path);
  return path;
};

export const listSpools = async (home: string): Promise<string[]> => {
  const names = await readdir(directory(home)).catch(() => [] as string[]);
  return names.filter((name) => name.endsWith(".results")).map((name) => join(directory(home), name));
};

/** A file that is not a spool gives an error that names it; the file stays where it is. */
export const readSpool = async (path: string): Promise<Spool> => {
  const { size } = await stat(path);
  if (size > MAX_SPOOL) throw new RangeError(`${path}: ${size} bytes, more than the ${MAX_SPOOL} allowed`);
  const bytes = await readFile(path);
  const messages: Results[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = at + 4 <= bytes.length ? bytes.readUInt32LE(at) : Infinity;
    if (length > MAX_FRAME || at + 4 + length > bytes.length) throw new RangeError(`${path}: damaged at offset ${at}`);
    messages.push(packr.unpack(bytes.subarray(at + 4, at + 4 + length)) as Results);
    at += 4 + length;
  }
  const uuid = /([0-9a-f-]{36})\.results$/.exec(path)?.[1] ?? "";
  return { uuid, messages };
};

/** Removes half-written files of agents that were killed while writing. */
export const pruneSpools = async (home: string, isGone: (uuid: string) => boolean): Promise<void> => {
  const names = await readdir(directory(home)).catch(() => [] as string[]);
  for (const name of names) {
    const uuid = /^([0-9a-f-]{36})\.results\.tmp$/.exec(name)?.[1];
    if (uuid !== undefined && isGone(uuid)) await unlink(join(directory(home), name));
  }
};

export const removeSpool = async (path: string): Promise<void> => unlink(path);
