import { readFileSync } from "node:fs";
import { mkdir, open, readFile, readdir, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import type { Run } from "../core/run.ts";
import { type PageCodec, createRunDecoder, encodeRun } from "../core/snapshot.ts";
import { SlipwayError } from "../errors.ts";

/**
 * Finished runs on disk, one file each: the records of the run, framed as length, checksum, type, bytes. A file is
 * written whole under another name, synced and renamed; it is never changed afterwards.
 */

const DIRECTORY = "runs";
const FRAME = 9;

/** Columns of finished tasks are mostly alike: even the fastest level shrinks them to a tenth. */
export const pageCodec: PageCodec = {
  pack: (bytes) => deflateRawSync(bytes, { level: 1 }),
  unpack: (bytes) => inflateRawSync(bytes, { maxOutputLength: 64 * 1024 * 1024 }),
};

/** Unique for each end of a run, since `retry` may end it again. */
export const archiveName = (run: Run): string =>
  join(DIRECTORY, `${run.id}-${Math.floor(run.finished).toString(36)}.run`);

export const writeArchive = async (home: string, run: Run): Promise<string> => {
  const name = archiveName(run);
  await mkdir(join(home, DIRECTORY), { recursive: true, mode: 0o700 });
  const handle = await open(join(home, `${name}.tmp`), "w", 0o600);
  try {
    for (const { type, payload } of encodeRun(run, pageCodec)) {
      const frame = Buffer.allocUnsafe(FRAME);
      frame.writeUInt32LE(payload.length, 0);
      frame.writeUInt32LE(crc32(payload, type), 4);
      frame.writeUInt8(type, 8);
      await handle.writev([frame, payload]);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(join(home, `${name}.tmp`), join(home, name));
  const directory = await open(join(home, DIRECTORY), "r");
  await directory.sync();
  await directory.close();
  return name;
};

/** Puts a run together, record by record: it yields after each. */
function* decode(bytes: Buffer, path: string): Generator<undefined, Run> {
  const push = createRunDecoder(pageCodec);
  for (let at = 0; at + FRAME <= bytes.length;) {
    const length = bytes.readUInt32LE(at);
    const type = bytes.readUInt8(at + 8);
    const payload = bytes.subarray(at + FRAME, at + FRAME + length);
    if (payload.length < length || crc32(payload, type) !== bytes.readUInt32LE(at + 4))
      throw new SlipwayError("journal-damaged", {
        segment: path,
        offset: at,
        detail: "a damaged record of an ended run",
      });
    const run = push({ type, payload });
    if (run !== undefined) return run;
    at += FRAME + length;
    yield;
  }
  throw new SlipwayError("journal-damaged", {
    segment: path,
    offset: bytes.length,
    detail: "the file of an ended run is cut short",
  });
}

/** In turns: a run of a million tasks keeps nobody waiting. */
export const readArchive = async (home: string, file: string): Promise<Run> => {
  const path = join(home, file);
  const parts = decode(await readFile(path), path);
  for (;;) {
    const step = parts.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
};

/** For replay, which is synchronous. */
export const readArchiveSync = (home: string, file: string): Run => {
  const path = join(home, file);
  const parts = decode(readFileSync(path), path);
  for (;;) {
    const step = parts.next();
    if (step.done === true) return step.value;
  }
};

/** Removes archives that no snapshot names any more, and half-written files. */
export const pruneArchives = async (home: string, keep: ReadonlySet<string>): Promise<void> => {
  const names = await readdir(join(home, DIRECTORY)).catch(() => [] as string[]);
  for (const name of names) if (!keep.has(join(DIRECTORY, name))) await unlink(join(home, DIRECTORY, name));
};
