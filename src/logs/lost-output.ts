import { open } from "node:fs/promises";
import { CHUNK_HEADER_BYTES, decodeChunkHeader, NO_CHUNK } from "../core/output-format.ts";
import type { Row, RunId } from "../core/ids.ts";

/** How much is read at once: chunks are mostly small, and after a large one only the next header matters. */
const BLOCK_BYTES = 256 * 1024;
const PAGE_BYTES = 4096;

/**
 * The last chunk of an attempt that was lost with its agent, before the agent could report how far it had come:
 * searches from `from`, the last chunk it reported, to the end of what is whole in its stream. -1 if there is none.
 */
export const findLastChunk = async (
  path: string,
  from: number,
  of: { readonly run: RunId; readonly row: Row; readonly attempt: number },
): Promise<number> => {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    let found = from < 0 ? NO_CHUNK : from;
    let block = Buffer.alloc(0);
    let blockAt = 0;
    let hop = 0;
    for (let at = Math.max(0, from); at + CHUNK_HEADER_BYTES <= size; at += hop) {
      if (at < blockAt || at + CHUNK_HEADER_BYTES > blockAt + block.length) {
        const bytes = Buffer.allocUnsafe(hop > PAGE_BYTES ? PAGE_BYTES : BLOCK_BYTES);
        block = bytes.subarray(0, (await handle.read(bytes, 0, bytes.length, at)).bytesRead);
        blockAt = at;
      }
      const header = decodeChunkHeader(block, at - blockAt);
      // the stream ends here because its agent was in the middle of a write
      if (typeof header === "string" || at + CHUNK_HEADER_BYTES + header.length > size) break;
      if (header.run === of.run && header.row === of.row && header.attempt === (of.attempt & 0xffff)) found = at;
      hop = CHUNK_HEADER_BYTES + header.length;
    }
    return found;
  } finally {
    await handle.close();
  }
};
