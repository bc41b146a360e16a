import type { IncomingMessage } from "node:http";
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

/** All of a body, if it is within the limit. */
export const readWhole = async (incoming: IncomingMessage, limit: number): Promise<Buffer> => {
  if (Number(incoming.headers["content-length"] ?? 0) > limit) throw tooLarge("the request", limit);
  const chunks: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => incoming.destroy(new Error("the request did not arrive in time")), PATIENCE_MS);
  try {
    // a refusal half way must still be answered
    for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      held += chunk.length;
      if (size > limit) throw tooLarge("the request", limit);
      if (held > MOST_HELD && size > MOST_BODY) throw new SlipwayError("busy", { held: formatSize(MOST_HELD) });
      chunks.push(chunk);
    }
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

/** The text of a JSON document; refused are bytes that are not UTF-8, and what is nested beyond measure. */
export const jsonText = (bytes: Uint8Array, what: string): string => {
  if (isTooDeep(bytes))
    throw new SlipwayError("bad-request", { detail: `${what} is nested more than ${MOST_DEPTH} levels deep` });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
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
