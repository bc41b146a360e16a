import { join } from "node:path";
import { crc32 } from "node:zlib";
import { SlipwayError } from "../errors.ts";
import {
  FIRST_INTERNAL_TYPE,
  HEADER_BYTES,
  TRAILER_BYTES,
  TYPE_COMMIT,
  TYPE_END,
  TYPE_GAP,
  TYPE_START,
  TYPE_TRAILER,
  decodeHeader,
  decodeMarker,
  decodeTrailer,
  saltOf,
} from "./format.ts";
import { type IoFile, type JournalIo, errnoOf, readAt } from "./io.ts";
import { type SegmentId, segmentName, snapshotName } from "./names.ts";
import { type Part, type Problem, damaged } from "./plan.ts";
import { type ScanSource, findRecord, hasMarker, isBlank, readRecord, scanRecords } from "./scan.ts";
import { decodeStart } from "./start.ts";

/** `lsn` counts the caller's records from 1, over all segments. Throws if the record cannot be applied. */
export type Replay = (type: number, payload: Buffer, lsn: number) => void;

/** A record that the caller could not apply, whole. */
export interface Refused {
  readonly segment: string;
  readonly offset: number;
  readonly lsn: number;
  readonly type: number;
  readonly payload: Buffer;
  readonly detail: string;
}

export interface WalkHandlers {
  readonly replay: Replay;
  /** Where damage is noted; the walk then continues after it. Without it, the first damage throws `journal-damaged`. */
  readonly problems?: Problem[] | undefined;
  /** Collects records that `replay` threw at; the walk continues. Without it, the first one throws `journal-event`. */
  readonly refused?: Refused[] | undefined;
  /** LSNs below this one were lost here. */
  readonly gap?: ((nextLsn: number) => void) | undefined;
}

const report = (problems: Problem[] | undefined, problem: Problem): void => {
  if (problems === undefined) throw damaged(problem);
  problems.push(problem);
};

const UNFIT = [RangeError, TypeError, SyntaxError, SlipwayError];

/** Whether an error is about the record, or a file it needs. Any other is a signal between the caller's own parts. */
const isUnfit = (error: unknown): boolean => UNFIT.some((Kind) => error instanceof Kind) || errnoOf(error) !== "";

const errorOf = ({ segment, offset, lsn, detail }: Refused, cause: unknown): unknown =>
  cause instanceof SlipwayError
    ? cause
    : new SlipwayError("journal-event", { segment, offset, record: lsn, detail }, cause);

/** Hands a record on; one that cannot be applied is noted, or ends the walk with an error that says where it is. */
const handOn = (
  { replay, refused }: WalkHandlers,
  segment: string,
  type: number,
  payload: Buffer,
  lsn: number,
  offset: number,
): void => {
  try {
    replay(type, payload, lsn);
  } catch (error) {
    if (!isUnfit(error)) throw error;
    const one = { segment, offset, lsn, type, payload, detail: (error as Error).message };
    if (refused === undefined) throw errorOf(one, error);
    refused.push({ ...one, payload: Buffer.from(payload) });
  }
};

export interface Walked {
  /** Everything that counts is before it. */
  readonly length: number;
  /** Everything before it was once on disk: a marker after it says so. */
  readonly proven: number;
  readonly firstLsn: number;
  readonly lastLsn: number;
  /** Records seen: fewer than the LSNs say if some were lost. */
  readonly records: number;
  readonly torn: { readonly offset: number; readonly bytes: number; readonly detail: string } | undefined;
}

/** Follows the LSNs through one segment and notices where they jump. */
const follow = (part: Part, firstLsn: number, handlers: WalkHandlers) => {
  const { problems, gap } = handlers;
  const problem = (one: Problem): void => report(problems, one);
  const name = segmentName(part.id);
  let first = firstLsn;
  let next = firstLsn;
  let records = 0;
  let proven = 0;
  let hole: Problem | undefined;
  /** Ends the hole that damage left: now we know where the LSNs continue. */
  const jump = (to: number | undefined, offset: number): void => {
    const lost = to === undefined ? undefined : to - next;
    if (lost !== undefined && lost < 0) {
      problem({ segment: name, offset, detail: `record ${to} follows record ${next - 1}` });
      return;
    }
    if (hole !== undefined) problem({ ...hole, lostRecords: lost });
    else if (lost !== undefined && lost > 0) {
      problem({
        segment: name,
        offset,
        detail: `records ${next} to ${next + lost - 1} are missing`,
        lostRecords: lost,
      });
    }
    hole = undefined;
    if (to !== undefined && to > next) {
      next = to;
      gap?.(next);
    }
  };
  return {
    record: (type: number, payload: Buffer, offset: number): void => {
      if (type < FIRST_INTERNAL_TYPE) {
        const lsn = next++;
        if (part.beforeLsn !== undefined && lsn >= part.beforeLsn) return;
        records += 1;
        handOn(handlers, name, type, payload, lsn, offset);
      } else if (type === TYPE_COMMIT || type === TYPE_END) {
        proven = offset;
        jump(decodeMarker(payload), offset);
      } else if (type === TYPE_GAP) {
        next = Math.max(next, decodeMarker(payload));
        gap?.(next);
      } else if (type === TYPE_START) {
        const start = decodeStart(payload);
        if (start === undefined || start.firstLsn !== next) {
          problem({ segment: name, offset, detail: `the segment begins at record ${start?.firstLsn}, not ${next}` });
        }
        if (records === 0 && start !== undefined) first = next = start.firstLsn;
      }
    },
    damage: (offset: number, end: number, detail: string): void => {
      if (problems === undefined) throw damaged({ segment: name, offset, detail, lostBytes: end - offset });
      hole =
        hole === undefined
          ? { segment: name, offset, detail, lostBytes: end - offset }
          : { ...hole, lostBytes: (hole.lostBytes ?? 0) + (end - offset) };
    },
    /** `lastLsn` is given if the chain knows it. */
    finish: (lastLsn: number | undefined, offset: number): void =>
      jump(lastLsn === undefined ? undefined : lastLsn + 1, offset),
    get result() {
      return { firstLsn: first, lastLsn: Math.min(next, part.beforeLsn ?? next) - 1, records, proven };
    },
  };
};

/**
 * Reads one segment up to its sealed length or, if nothing sealed it, as far as it is valid: what follows then is a
 * torn tail, unless a marker after it proves that it was on disk.
 */
export const walkSegment = async (
  io: JournalIo,
  dir: string,
  part: Part,
  previousLsn: number,
  handlers: WalkHandlers,
  opened?: IoFile,
): Promise<Walked> => {
  const name = segmentName(part.id);
  const file = opened ?? (await io.open(join(dir, name), "r"));
  try {
    const source: ScanSource = { file, salt: saltOf("segment", part.id) };
    const size = await file.size();
    const limit = Math.min(part.mark?.length ?? size, size);
    const header = decodeHeader("segment", part.id, await readAt(file, 0, Math.min(size, HEADER_BYTES)));
    if (typeof header === "string")
      report(handlers.problems, { segment: name, offset: 0, detail: header, lostRecords: 0 });
    const known = part.firstLsn ?? (typeof header === "string" ? undefined : header.firstLsn);
    const state = follow(part, known ?? previousLsn + 1, handlers);
    let at = Math.min(HEADER_BYTES, limit);
    let torn: Walked["torn"];
    for (;;) {
      const end = await scanRecords(source, at, limit, state.record);
      at = end.offset;
      if (end.detail === undefined) break;
      if (part.mark === undefined && !part.followed) {
        const isProven = await hasMarker(source, at + 1, limit);
        if (!isProven && (await isBlank(file, at, limit))) break;
        // a running server overwrites the zeros it prepared: read again what was zero when we first looked
        if (typeof (await readRecord(source, at, limit)) !== "string") continue;
        if (!isProven) {
          torn = { offset: at, bytes: limit - at, detail: end.detail };
          break;
        }
      }
      // a killed server left zeros here, and the next START, which would say where the records end, cannot be read: nothing is lost
      if (part.mark === undefined && (await isBlank(file, at, limit))) break;
      const next = await findRecord(source, at + 1, limit);
      state.damage(at, next ?? limit, end.detail);
      at = next ?? limit;
      if (next === undefined) break;
    }
    if (part.mark !== undefined && size < part.mark.length) {
      const detail = `the segment is cut short (${size} of ${part.mark.length} bytes)`;
      state.damage(size, part.mark.length, detail);
    }
    state.finish(part.mark?.lastLsn, at);
    return { length: at, ...state.result, torn };
  } finally {
    if (opened === undefined) await file.close();
  }
};

/** Reads a snapshot. Returns how many of the caller's records it held. */
export const walkSnapshot = async (
  io: JournalIo,
  dir: string,
  id: SegmentId,
  lsn: number,
  handlers: WalkHandlers,
  opened?: IoFile,
): Promise<number> => {
  const { problems } = handlers;
  const name = snapshotName(id);
  const file = opened ?? (await io.open(join(dir, name), "r"));
  try {
    const source: ScanSource = { file, salt: saltOf("snapshot", id) };
    const size = await file.size();
    let crc = crc32(await readAt(file, 0, Math.min(HEADER_BYTES, size)));
    let count = 0;
    let trailer: { count: number; crc: number } | undefined;
    let crcAtTrailer = 0;
    const holes: Problem[] = [];
    const onRecord = (type: number, payload: Buffer, offset: number): void => {
      if (type === TYPE_TRAILER) trailer = decodeTrailer(payload);
      else if (type < FIRST_INTERNAL_TYPE) {
        count += 1;
        handOn(handlers, name, type, payload, lsn, offset);
      }
    };
    const end = Math.max(size - TRAILER_BYTES, HEADER_BYTES);
    let at = HEADER_BYTES;
    for (;;) {
      const stop = at < end ? end : size;
      const reached = await scanRecords(source, at, stop, onRecord, (bytes) => {
        if (stop === end) crcAtTrailer = crc = crc32(bytes, crc);
      });
      at = reached.offset;
      if (reached.detail !== undefined) {
        const next = await findRecord(source, at + 1, size);
        const hole = { segment: name, offset: at, detail: reached.detail, lostBytes: (next ?? size) - at };
        if (problems === undefined) throw damaged(hole);
        holes.push(hole);
        at = next ?? size;
      }
      if (at >= size) break;
    }
    const lost = trailer === undefined ? undefined : trailer.count - count;
    if (holes.length === 0 && (trailer === undefined || lost !== 0 || trailer.crc !== crcAtTrailer)) {
      holes.push({ segment: name, offset: end, detail: "the trailer does not fit the records before it" });
    }
    for (const [index, hole] of holes.entries()) report(problems, { ...hole, lostRecords: index === 0 ? lost : 0 });
    return count;
  } finally {
    if (opened === undefined) await file.close();
  }
};
