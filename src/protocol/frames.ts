import type { Duplex } from "node:stream";
import { packr } from "../core/codec.ts";

/** Length-prefixed msgpack over a stream. Sizes are bounded on both sides, before anything is allocated. */

export const MAX_FRAME = 64 * 1024 * 1024;
/** The longest frame a peer may send before it has shown its token: room for the hello of an agent without tasks. */
export const MAX_FRAME_UNKNOWN = 8 * 1024;
/** A hello whose beginning shows the token may be longer: it lists the agent's tasks. */
export const MAX_FRAME_VOUCHED = 16 * 1024 * 1024;
/** This much of a longer frame is examined before any more of it is kept. */
export const VOUCHING_BYTES = 1024;
/** Pieces smaller than this are merged as they come: thousands of single bytes cost more than they hold. */
const SMALL_PIECE = 4096;
/** A peer that does not read is dropped once this much waits for it. */
export const MAX_BUFFERED = 256 * 1024 * 1024;

export class FrameError extends Error {}

/**
 * Cuts a byte stream into frames. Memory is bounded by the largest frame allowed. If a frame is longer than the limit,
 * `vouch` sees its first bytes: if it agrees, frames may be as long as MAX_FRAME_VOUCHED.
 */
export const createFrameReader = (
  limit: number,
  vouch?: (head: Buffer) => boolean,
): { push(chunk: Buffer, onFrame: (body: Buffer) => void): void; setLimit(limit: number): void } => {
  let chunks: Buffer[] = [];
  let size = 0;
  let need = 4;
  const join = (): Buffer => {
    const all = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
    chunks = [];
    size = 0;
    return all;
  };
  const keep = (chunk: Buffer): void => {
    size += chunk.length;
    let last = chunk;
    while (chunks.length > 0 && chunks.at(-1)!.length <= Math.min(last.length, SMALL_PIECE))
      last = Buffer.concat([chunks.pop()!, last]);
    chunks.push(last);
  };
  /** Whether the frame that begins there may continue; undefined when too little of it is here to tell. */
  const mayCome = (length: number, head: Buffer): boolean | undefined => {
    if (length <= limit) return true;
    if (vouch === undefined || length > MAX_FRAME_VOUCHED) return false;
    if (head.length < VOUCHING_BYTES) return undefined;
    if (!vouch(head.subarray(0, VOUCHING_BYTES))) return false;
    limit = MAX_FRAME_VOUCHED;
    return true;
  };
  return {
    setLimit: (next) => {
      limit = next;
    },
    push: (chunk, onFrame) => {
      keep(chunk);
      if (size < need) return;
      const all = join();
      let at = 0;
      need = 4;
      while (all.length - at >= 4) {
        const length = all.readUInt32LE(at);
        const may = mayCome(length, all.subarray(at + 4));
        if (may === false) throw new FrameError(`a frame of ${length} bytes, more than the ${limit} allowed`);
        if (may === undefined) {
          need = 4 + VOUCHING_BYTES;
          break;
        }
        if (all.length - at - 4 < length) {
          need = 4 + length;
          break;
        }
        onFrame(all.subarray(at + 4, at + 4 + length));
        at += 4 + length;
      }
      if (at < all.length) {
        chunks.push(at === 0 ? all : all.subarray(at));
        size = all.length - at;
      }
    },
  };
};

export const encodeFrame = (message: unknown): Buffer => {
  const body = packr.pack(message);
  if (body.length > MAX_FRAME)
    throw new FrameError(`a message of ${body.length} bytes, more than the ${MAX_FRAME} allowed`);
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32LE(body.length, 0);
  body.copy(frame, 4);
  return frame;
};

export interface Channel<Out> {
  send(message: Out): void;
  /** Sends a message that is already encoded, since many peers get the same one. */
  sendFrame(frame: Buffer): void;
  close(): void;
  destroy(reason: string): void;
  /** Bytes that the peer has not read yet. */
  readonly buffered: number;
  readonly open: boolean;
  /** A peer that has proved its identity may send larger frames. */
  trust(): void;
  /** Milliseconds since the peer last sent something, by a clock that never steps. */
  silence(): number;
}

const now = Promise.resolve();

/**
 * A message channel over a socket. Calls `onClose` exactly once, with the reason. Messages sent at once
 * share a write; a peer that lets more than MAX_BUFFERED pile up is dropped. `vouch` as for the frame reader.
 */
export const createChannel = <In, Out>(
  socket: Duplex & { setNoDelay?(on: boolean): unknown },
  onMessage: (message: In) => void,
  onClose: (reason: string) => void,
  vouch?: (head: Buffer) => boolean,
): Channel<Out> => {
  socket.setNoDelay?.(true);
  const reader = createFrameReader(MAX_FRAME_UNKNOWN, vouch);
  let open = true;
  let heard = performance.now();
  /** To be written together, and their bytes. */
  let gathered: Buffer[] = [];
  let gatheredBytes = 0;
  const flush = (): void => {
    const frames = gathered;
    gathered = [];
    gatheredBytes = 0;
    if (frames.length === 1) return void socket.write(frames[0]!);
    socket.cork();
    for (const frame of frames) socket.write(frame);
    socket.uncork();
  };
  const flushIfOpen = (): void => {
    if (open && gathered.length > 0) flush();
  };
  const end = (reason: string): void => {
    if (!open) return;
    open = false;
    socket.destroy();
    onClose(reason);
  };
  socket.on("data", (chunk: Buffer) => {
    heard = performance.now();
    try {
      reader.push(chunk, (body) => {
        if (open) onMessage(packr.unpack(body) as In);
      });
    } catch (error) {
      end(`protocol error: ${(error as Error).message}`);
    }
  });
  socket.on("error", (error) => end(error.message));
  socket.on("close", () => end("connection closed"));
  socket.on("end", () => end("connection closed by the other side"));
  const sendFrame = (frame: Buffer): void => {
    if (!open) return;
    if (socket.writableLength + gatheredBytes > MAX_BUFFERED) return end("the other side does not read");
    // not process.nextTick: that would come after all who were told together with this peer have answered; nor
    // queueMicrotask, which costs several times as much
    if (gathered.length === 0) void now.then(flushIfOpen);
    gathered.push(frame);
    gatheredBytes += frame.length;
  };
  return {
    send: (message) => {
      if (open) sendFrame(encodeFrame(message));
    },
    sendFrame,
    close: () => {
      if (!open) return;
      flushIfOpen();
      open = false;
      socket.end();
      onClose("closed");
    },
    destroy: end,
    trust: () => reader.setLimit(MAX_FRAME),
    silence: () => performance.now() - heard,
    get buffered() {
      return socket.writableLength + gatheredBytes;
    },
    get open() {
      return open;
    },
  };
};
