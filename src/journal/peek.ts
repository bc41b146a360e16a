import { join } from "node:path";
import { type FileHeader, HEADER_BYTES, TYPE_START, decodeHeader, saltOf } from "./format.ts";
import { type JournalIo, errnoOf, readAt, writeAll } from "./io.ts";
import { HEAD_NAME, type SegmentId, baseName, parseName, segmentName } from "./names.ts";
import { hasMarker, readRecord } from "./scan.ts";
import { type Start, decodeStart } from "./start.ts";

/** The beginning of a segment: what it says about itself, as far as it can be read. */
export interface Peek {
  readonly id: SegmentId;
  readonly size: number;
  readonly header: FileHeader | undefined;
  readonly start: Start | undefined;
  /** Why the START cannot be read. */
  readonly problem: { readonly offset: number; readonly detail: string } | undefined;
}

export const peekSegment = async (io: JournalIo, dir: string, id: SegmentId): Promise<Peek> => {
  const file = await io.open(join(dir, segmentName(id)), "r");
  try {
    const size = await file.size();
    const header = decodeHeader("segment", id, await readAt(file, 0, Math.min(size, HEADER_BYTES)));
    const record = await readRecord({ file, salt: saltOf("segment", id) }, HEADER_BYTES, size);
    const start = typeof record !== "string" && record.type === TYPE_START ? decodeStart(record.payload) : undefined;
    const detail = typeof record === "string" ? `the first record: ${record}` : "the first record is not a START";
    return {
      id,
      size,
      header: typeof header === "string" ? undefined : header,
      start,
      problem: start === undefined ? { offset: HEADER_BYTES, detail } : undefined,
    };
  } finally {
    await file.close();
  }
};

/** Whether a segment whose START cannot be read holds records that were once acknowledged. */
export const wasUsed = async (io: JournalIo, dir: string, id: SegmentId): Promise<boolean> => {
  const file = await io.open(join(dir, segmentName(id)), "r");
  try {
    return await hasMarker({ file, salt: saltOf("segment", id) }, HEADER_BYTES, await file.size());
  } finally {
    await file.close();
  }
};

/**
 * The head file names the newest segment whose START is on disk. It is written before anything in that segment is
 * acknowledged, so a head without its segment means that the segment was lost. If the head is unreadable or absent,
 * nothing is lost.
 */
export const readHead = async (io: JournalIo, dir: string): Promise<SegmentId | undefined> => {
  try {
    const file = await io.open(join(dir, HEAD_NAME), "r");
    try {
      return parseName(`${(await readAt(file, 0, 64)).toString("latin1").trim()}.log`);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
};

/** The caller must sync the directory. */
export const writeHead = async (io: JournalIo, dir: string, id: SegmentId): Promise<void> => {
  const temporary = join(dir, `${HEAD_NAME}.${id.epoch}.tmp`);
  const file = await io.open(temporary, "w");
  try {
    await writeAll(file, [Buffer.from(`${baseName(id)}\n`)], 0);
    await file.datasync();
  } finally {
    await file.close();
  }
  await io.rename(temporary, join(dir, HEAD_NAME));
};
