import { SlipwayError } from "../errors.ts";

/** Bodies that stream, in both directions, with back-pressure and bounds. */

const LONGEST_LINE = 64 * 1024 * 1024;

/** The values of a request's body: one JSON document per line, or a single one. */
export async function* readValues(body: ReadableStream<Uint8Array> | null, lines: boolean): AsyncGenerator<unknown> {
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
  if (body !== null)
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
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

/** A response that pulls from a generator: nothing is read ahead of the client. */
export const streamOf = (
  source: AsyncIterable<unknown>,
  encode: (value: never) => Uint8Array | string,
  abort: AbortController,
): ReadableStream<Uint8Array> => {
  const iterator = source[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const step = await iterator.next();
        if (step.done === true) return controller.close();
        const bytes = encode(step.value as never);
        controller.enqueue(typeof bytes === "string" ? encoder.encode(bytes) : bytes);
      },
      async cancel() {
        abort.abort();
        await iterator.return?.();
      },
    },
    { highWaterMark: 1 },
  );
};

export const ndjsonResponse = (source: AsyncIterable<unknown>, abort: AbortController): Response =>
  new Response(
    streamOf(source, (value: unknown) => `${JSON.stringify(value)}\n`, abort),
    { headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" } },
  );

export const bytesResponse = (source: AsyncIterable<Uint8Array>, abort: AbortController): Response =>
  new Response(
    streamOf(source, (value: Uint8Array) => value, abort),
    { headers: { "content-type": "application/octet-stream", "cache-control": "no-store" } },
  );
