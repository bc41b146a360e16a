import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { decodeLearned, encodeLearned } from "../learned/codec.ts";
import { type Learned, createLearned } from "../learned/learned.ts";
import { replaceFile } from "../replace-file.ts";
import type { Log } from "./logger.ts";

/**
 * What was learned, in the home: `learned.bin`, replaced as a whole. It is advice: a file that cannot be read is set
 * aside with a warning, and the server starts without it.
 *
 *   file = magic[8] version:u32 crc:u32 body          (the CRC-32 is the body's)
 */
const NAME = "learned.bin";
const MAGIC = "SLIPWAYL";
const VERSION = 1;
const HEAD = 16;
/** Far more than the store can hold. */
const MOST_BYTES = 256 * 1024 * 1024;

export const learnedPath = (home: string): string => join(home, NAME);

export interface LoadedLearned {
  readonly learned: Learned;
  /** When it was saved, by the server's clock; 0 if never. */
  readonly saved: number;
}

const parse = (bytes: Buffer): LoadedLearned => {
  if (bytes.length < HEAD || bytes.toString("latin1", 0, 8) !== MAGIC) throw new RangeError("it is not Slipway's");
  const version = bytes.readUInt32LE(8);
  if (version !== VERSION) throw new RangeError(`it is of version ${version}, and this Slipway reads ${VERSION}`);
  const body = bytes.subarray(HEAD);
  if (crc32(body) !== bytes.readUInt32LE(12)) throw new RangeError("its checksum is wrong");
  const learned = createLearned();
  return { learned, saved: decodeLearned(body, learned) };
};

/** Undefined if there is none. */
const readBounded = async (path: string): Promise<Buffer | undefined> => {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const about = await file.stat();
    if (!about.isFile() || about.size > MOST_BYTES) throw new RangeError("it is not a file of this kind");
    return await readFile(file);
  } finally {
    await file.close();
  }
};

export const loadLearned = async (home: string, log: Log): Promise<LoadedLearned> => {
  const path = learnedPath(home);
  try {
    const bytes = await readBounded(path);
    if (bytes !== undefined) return parse(bytes);
  } catch (error) {
    const aside = `${path}.unreadable`;
    const moved = await rename(path, aside).then(
      () => true,
      () => false,
    );
    const where = moved ? `it is now ${aside}, and` : "it is left where it is, and";
    log(`what was learned could not be read from ${path}: ${(error as Error).message}; ${where} learning starts again`);
  }
  return { learned: createLearned(), saved: 0 };
};

export const saveLearned = async (home: string, learned: Learned, now: number): Promise<number> => {
  const body = encodeLearned(learned, now);
  const head = Buffer.alloc(HEAD);
  head.write(MAGIC, 0, "latin1");
  head.writeUInt32LE(VERSION, 8);
  head.writeUInt32LE(crc32(body), 12);
  await replaceFile(learnedPath(home), Buffer.concat([head, body]));
  return HEAD + body.length;
};
