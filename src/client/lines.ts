import { SlipwayError } from "../errors.ts";

/** No answer of our server has a longer line. */
const LONGEST_LINE = 64 * 1024 * 1024;

/**
 * Splits a byte stream at newlines. Text is decoded per line, so a character cut by a chunk's edge stays whole; a last
 * line without a newline counts; what is held is bounded by `limit`.
 */
export async function* readLines(source: AsyncIterable<Uint8Array>, limit = LONGEST_LINE): AsyncGenerator<string> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  for await (const chunk of source) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      const end = chunk.subarray(from, at);
      from = at + 1;
      yield Buffer.concat(held.length === 0 ? [end] : [...held, end]).toString("utf8");
      held = [];
      heldBytes = 0;
    }
    if (from === chunk.length) continue;
    held.push(chunk.subarray(from));
    heldBytes += chunk.length - from;
    if (heldBytes > limit)
      throw new SlipwayError("internal", { detail: `the server sent a line of more than ${limit} bytes` });
  }
  if (heldBytes > 0) yield Buffer.concat(held).toString("utf8");
}

/** One JSON value per line; empty lines keep a quiet connection open and mean nothing. */
export async function* readJsonLines(source: AsyncIterable<Uint8Array>, limit?: number): AsyncGenerator<unknown> {
  for await (const line of readLines(source, limit)) {
    if (line.trim() === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      throw new SlipwayError(
        "internal",
        { detail: `the server sent a line that is not JSON: ${line.slice(0, 80)}` },
        cause,
      );
    }
    yield value;
  }
}
