import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { SlipwayError } from "../errors.ts";

/** Bodies that stream, in both directions, with back-pressure and bounds. */

type Outgoing = HttpBindings["outgoing"];

const LONGEST_LINE = 64 * 1024 * 1024;

/** The values of a request's body: one JSON document per line, or a single one. */
export async function* readValues(body: AsyncIterable<Uint8Array>, lines: boolean): AsyncGenerator<unknown> {
  const parse = (text: string, number: number): unknown => {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new SlipwayError(
        "bad-request",
        { detail: `line ${number} of the request is not JSON: ${(error as Error).message}` },
        error,
      );
    }
  };
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let number = 0;
  for await (const chunk of body) {
    try {
      rest += decoder.decode(chunk, { stream: true });
    } catch (error) {
      throw new SlipwayError("bad-request", { detail: "the request is not UTF-8" }, error);
    }
    if (lines) {
      const parts = rest.split("\n");
      rest = parts.pop()!;
      for (const part of parts) {
        number += 1;
        if (part.trim() !== "") yield parse(part, number);
      }
    }
    if (rest.length > LONGEST_LINE)
      throw new SlipwayError("too-large", {
        what: "the request",
        size: `over ${LONGEST_LINE} bytes`,
        limit: `${LONGEST_LINE} bytes a line`,
      });
  }
  if (rest.trim() !== "") yield parse(rest, number + 1);
  // a single document is complete by itself
  if (!lines) yield { end: true };
}

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
): Promise<void> => {
  const iterator = source[Symbol.asyncIterator]();
  outgoing.once("close", () => {
    abort.abort();
    void iterator.return?.();
  });
  outgoing.writeHead(200, { "content-type": type, "cache-control": "no-store" });
  // a stream that is silent at first is still answered at once
  setImmediate(() => outgoing.flushHeaders());
  try {
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next())
      if (!outgoing.write(encode(step.value as never)) && !outgoing.destroyed) await taken(outgoing);
    outgoing.end();
  } catch (error) {
    // half an answer must not look like a whole one
    outgoing.destroy(error as Error);
  }
};

export const sendLines = (outgoing: Outgoing, source: AsyncIterable<unknown>, abort: AbortController): Response => {
  void pour(outgoing, "application/x-ndjson", source, (value: unknown) => `${JSON.stringify(value)}\n`, abort);
  return RESPONSE_ALREADY_SENT;
};

export const sendBytes = (outgoing: Outgoing, source: AsyncIterable<Uint8Array>, abort: AbortController): Response => {
  void pour(outgoing, "application/octet-stream", source, (value: Uint8Array) => value, abort);
  return RESPONSE_ALREADY_SENT;
};
