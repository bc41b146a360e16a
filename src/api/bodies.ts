import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { formatSize } from "../core/quantities.ts";
import { SlipwayError } from "../errors.ts";

/** Bodies of requests are hostile: their size is bounded as they come, their nesting before they are parsed. */

const MB = 1024 * 1024;
/** For a request that carries no files and no tasks. */
export const MOST_BODY = MB;
/** For who has not shown a token yet. */
export const MOST_SIGN_IN = 4096;
/** 32 MB of files, as base64, and the rest of a launch. */
export const MOST_LAUNCH = 48 * MB;
/** A line of a submission, or a run that comes as one document. */
export const MOST_LINE = 64 * MB;
/** What all bodies that are being read may hold together; single small ones always find room. */
const MOST_HELD = 192 * MB;
/** A body that is read as a whole has arrived by then. */
const PATIENCE_MS = 120_000;
/** JSON is nested no deeper than this. */
export const MOST_DEPTH = 200;

let held = 0;

export const tooLarge = (what: string, limit: number): SlipwayError =>
  new SlipwayError("too-large", { what, size: `over ${formatSize(limit)}`, limit: formatSize(limit) });

/**
 * Gives the pieces of a body as they come, until its end. What `take` throws ends it; the rest stays unread, and a refusal
 * can still be answered. An iterator of the same would cost several times as much.
 */
export const eachPiece = (incoming: Readable, take: (piece: Buffer) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    const settle = (): void => {
      incoming.off("data", onData).off("end", onEnd).off("error", fail).off("close", onClose);
    };
    const fail = (error: unknown): void => {
      settle();
      incoming.pause();
      reject(error as Error);
    };
    const onData = (piece: Buffer): void => {
      try {
        take(piece);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = (): void => {
      settle();
      resolve();
    };
    const onClose = (): void => fail(new Error("the request was cut short"));
    if (incoming.destroyed) return onClose();
    incoming.on("error", fail).on("close", onClose).on("end", onEnd).on("data", onData);
  });

/** All of a body, if it is within the limit. */
export const readWhole = async (incoming: IncomingMessage, limit: number): Promise<Buffer> => {
  if (Number(incoming.headers["content-length"] ?? 0) > limit) throw tooLarge("the request", limit);
  const chunks: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => incoming.destroy(new Error("the request did not arrive in time")), PATIENCE_MS);
  try {
    await eachPiece(incoming, (chunk) => {
      size += chunk.length;
      held += chunk.length;
      if (size > limit) throw tooLarge("the request", limit);
      if (held > MOST_HELD && size > MOST_BODY) throw new SlipwayError("busy", { held: formatSize(MOST_HELD) });
      chunks.push(chunk);
    });
  } finally {
    clearTimeout(late);
    held -= size;
  }
  return Buffer.concat(chunks, size);
};

/** Whether JSON is nested too deeply to be worked with. One look at each byte: nothing is built. */
const isTooDeep = (bytes: Uint8Array): boolean => {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inText) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) inText = false;
    } else if (byte === 0x22) inText = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > MOST_DEPTH) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
};

const strict = new TextDecoder("utf-8", { fatal: true });

/** The text of a JSON document; refused are bytes that are not UTF-8, and what is nested beyond measure. */
export const jsonText = (bytes: Uint8Array, what: string): string => {
  if (isTooDeep(bytes))
    throw new SlipwayError("bad-request", { detail: `${what} is nested more than ${MOST_DEPTH} levels deep` });
  try {
    return strict.decode(bytes);
  } catch (error) {
    throw new SlipwayError("bad-request", { detail: `${what} is not UTF-8` }, error);
  }
};

export const parseJson = (bytes: Uint8Array, what: string): unknown => {
  const text = jsonText(bytes, what);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SlipwayError("bad-request", { detail: `${what} is not JSON: ${(error as Error).message}` }, error);
  }
};
