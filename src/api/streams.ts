import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { LiveViewer } from "./live-service.ts";
import type { Readable } from "node:stream";
import { MOST_LINE, eachPiece, parseJson, tooLarge } from "./bodies.ts";

/** Bodies that stream, in both directions, with back-pressure and bounds. */

type Outgoing = HttpBindings["outgoing"];

/** The values of a request's body: one JSON document per line. Nothing longer than a line is held. */
export async function* readValues(body: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  let parts: Uint8Array[] = [];
  let size = 0;
  let number = 0;
  const keep = (part: Uint8Array): void => {
    size += part.length;
    if (size > MOST_LINE) throw tooLarge(`line ${number + 1} of the request`, MOST_LINE);
    if (part.length > 0) parts.push(part);
  };
  /** What is held, as one line; undefined when it is empty. */
  const line = (): { value: unknown } | undefined => {
    const bytes = Buffer.concat(parts, size);
    parts = [];
    size = 0;
    number += 1;
    if (isBlank(bytes)) return undefined;
    return { value: parseJson(bytes, `line ${number} of the request`) };
  };
  for await (const chunk of body) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, at));
      from = at + 1;
      const found = line();
      if (found !== undefined) yield found.value;
    }
    keep(chunk.subarray(from));
  }
  const last = line();
  if (last !== undefined) yield last.value;
}

const readDocument = async (incoming: Readable): Promise<readonly unknown[]> => {
  const parts: Buffer[] = [];
  let size = 0;
  await eachPiece(incoming, (part) => {
    size += part.length;
    if (size > MOST_LINE) throw tooLarge("the request", MOST_LINE);
    parts.push(part);
  });
  const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts, size);
  // a single document is complete by itself
  const end = { end: true };
  return isBlank(bytes) ? [end] : [parseJson(bytes, "line 1 of the request"), end];
};

/** The same of a body that is one document: read when the first is asked for. */
export const documentValues = (incoming: Readable): AsyncIterable<unknown> => {
  let found: readonly unknown[] | undefined;
  let at = 0;
  const next = async (): Promise<IteratorResult<unknown>> => {
    found ??= await readDocument(incoming);
    return at < found.length ? { done: false, value: found[at++] } : { done: true, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
};

const NEWLINE = 10;
const isBlank = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 32 || (byte >= 9 && byte <= 13));

/** Until the other side has taken what was written, or is gone. */
const taken = (outgoing: Outgoing): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      outgoing.off("drain", go);
      outgoing.off("close", go);
      resolve();
    };
    outgoing.once("drain", go);
    outgoing.once("close", go);
  });

/**
 * Answers with what a generator yields; nothing is read ahead of the client. Written straight to Node's response: what
 * is ready together leaves in one write, the head with the first piece and the end with the last.
 */
const pour = async (
  outgoing: Outgoing,
  type: string,
  source: AsyncIterable<unknown>,
  encode: (value: never) => Uint8Array | string,
  abort: AbortController,
  first?: string,
): Promise<void> => {
  const iterator = source[Symbol.asyncIterator]();
  let ended = false;
  outgoing.once("close", () => {
    // whoever waits for what nobody will read; what has come to its end waits for nothing
    if (ended) return;
    abort.abort();
    void iterator.return?.();
  });
  outgoing.writeHead(200, { "content-type": type, "cache-control": "no-store" });
  if (first !== undefined) outgoing.write(first);
  // a stream that is silent at first is still answered at once
  else setImmediate(() => outgoing.flushHeaders());
  try {
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next())
      if (!outgoing.write(encode(step.value as never)) && !outgoing.destroyed) await taken(outgoing);
    ended = true;
    outgoing.end();
  } catch (error) {
    // half an answer must not look like a whole one
    outgoing.destroy(error as Error);
  }
};

const lineOf = (value: unknown): string => `${JSON.stringify(value)}\n`;

/** `first`, if given, is a line that goes before them, at once. */
export const sendLines = (
  outgoing: Outgoing,
  source: AsyncIterable<unknown>,
  abort: AbortController,
  first?: unknown,
): Response => {
  void pour(outgoing, "application/x-ndjson", source, lineOf, abort, first === undefined ? undefined : lineOf(first));
  return RESPONSE_ALREADY_SENT;
};

/** The same for many lines that are made together: they leave in one write. */
export const sendGroups = (
  outgoing: Outgoing,
  source: AsyncIterable<readonly unknown[]>,
  abort: AbortController,
): Response => {
  const encode = (values: readonly unknown[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join("");
  void pour(outgoing, "application/x-ndjson", source, encode, abort);
  return RESPONSE_ALREADY_SENT;
};

/** A text that is made in pieces: none is longer to make than others can wait. */
export const sendText = (
  outgoing: Outgoing,
  type: string,
  source: AsyncIterable<string>,
  abort: AbortController,
): Response => {
  void pour(outgoing, type, source, (value: string) => value, abort);
  return RESPONSE_ALREADY_SENT;
};

/**
 * Server-Sent Events for a viewer: frames come as they are made, for all viewers the same bytes. Whoever makes them looks
 * how far behind a viewer is, and lets it go (rule 11). No proxy may hold back what is written. With `seconds`, it ends.
 */
export const sendFrames = async (
  outgoing: Outgoing,
  open: (viewer: LiveViewer) => Promise<void>,
  seconds?: number,
): Promise<Response> => {
  let begun = false;
  const begin = (): void => {
    begun = true;
    outgoing.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    });
  };
  await open({
    take: (frame) => {
      if (!begun) begin();
      outgoing.write(frame);
    },
    behind: () => outgoing.writableLength,
    // what was not read will not be read: nothing is kept to say goodbye
    drop: () => outgoing.destroy(),
    onGone: (action) => void outgoing.once("close", action),
  });
  if (!begun) begin();
  outgoing.flushHeaders();
  if (seconds === undefined) return RESPONSE_ALREADY_SENT;
  const timer = setTimeout(() => outgoing.end(), seconds * 1000).unref();
  outgoing.once("close", () => clearTimeout(timer));
  return RESPONSE_ALREADY_SENT;
};

export const sendBytes = (outgoing: Outgoing, source: AsyncIterable<Uint8Array>, abort: AbortController): Response => {
  void pour(outgoing, "application/octet-stream", source, (value: Uint8Array) => value, abort);
  return RESPONSE_ALREADY_SENT;
};

/** Some bytes of a stream: `count` of them from `first` on. Reads no further than it must. */
export async function* someBytes(
  source: AsyncIterable<Uint8Array>,
  first: number,
  count: number,
): AsyncGenerator<Uint8Array> {
  let skip = first;
  let left = count;
  for await (const piece of source) {
    if (skip >= piece.length) {
      skip -= piece.length;
      continue;
    }
    const part = piece.subarray(skip, skip + left);
    skip = 0;
    left -= part.length;
    yield part;
    if (left === 0) return;
  }
}
