import { MAX_FRAME, NONE } from "./protocol.ts";

/** Collects frames in one buffer that is sent with one write. */
export interface FrameWriter {
  begin(type: number): void;
  u8(value: number): void;
  u32(value: number): void;
  f64(value: number): void;
  text(value: string): void;
  optional(value: string | null): void;
  bytes(value: Uint8Array): void;
  /** Completes the frame, or drops it and says why it cannot be sent. */
  end(): "ok" | "too-large" | "nul";
  readonly size: number;
  /** A copy of what was written of this frame since `size` was this; undefined if the frame cannot be sent. */
  since(size: number): Buffer | undefined;
  /** Everything since the last take; the writer starts over. */
  take(): Buffer;
}

const KEPT = 64 * 1024;

/** Below this, writing characters one by one is faster than the call that writes any text. */
const SHORT = 64;

const writeText = (buffer: Buffer, value: string, at: number): number => {
  const { length } = value;
  if (length > SHORT) return buffer.write(value, at, "utf8");
  for (let i = 0; i < length; i += 1) {
    const code = value.charCodeAt(i);
    if (code > 0x7f) return buffer.write(value, at, "utf8");
    buffer[at + i] = code;
  }
  return length;
};

const putU32 = (buffer: Buffer, value: number, at: number): void => {
  buffer[at] = value;
  buffer[at + 1] = value >>> 8;
  buffer[at + 2] = value >>> 16;
  buffer[at + 3] = value >>> 24;
};

export const createFrameWriter = (): FrameWriter => {
  let buffer = Buffer.allocUnsafeSlow(KEPT);
  let used = 0;
  let start = 0;
  let tooLarge = false;
  let nul = false;

  /** False once the frame is larger than any frame may be: the rest of it is not even written. */
  const room = (size: number): boolean => {
    if (used - start + size > MAX_FRAME + 4) tooLarge = true;
    if (tooLarge) return false;
    if (used + size > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, used + size));
      buffer.copy(larger, 0, 0, used);
      buffer = larger;
    }
    return true;
  };

  const u32 = (value: number): void => {
    if (!room(4)) return;
    putU32(buffer, value, used);
    used += 4;
  };

  const text = (value: string): void => {
    if (tooLarge) return;
    if (!room(value.length * 3 + 5)) {
      // The bound above is three bytes for each unit; only text near the limit needs an exact count.
      const exact = Buffer.byteLength(value) + 5;
      if (used - start + exact > MAX_FRAME + 4) return;
      tooLarge = false;
      if (!room(exact)) return;
    }
    if (value.includes("\0")) nul = true;
    const length = writeText(buffer, value, used + 4);
    putU32(buffer, length, used);
    used += 4 + length;
    buffer[used++] = 0;
  };

  return {
    begin: (type) => {
      start = used;
      tooLarge = nul = false;
      room(5);
      buffer[used + 4] = type;
      used += 5;
    },
    u8: (value) => {
      if (room(1)) buffer[used++] = value;
    },
    u32,
    f64: (value) => {
      if (room(8)) used = buffer.writeDoubleLE(value, used);
    },
    text,
    optional: (value) => (value === null ? u32(NONE) : text(value)),
    bytes: (value) => {
      if (!room(value.length)) return;
      buffer.set(value, used);
      used += value.length;
    },
    end: () => {
      if (!tooLarge && !nul) {
        putU32(buffer, used - start - 4, start);
        return "ok";
      }
      used = start;
      return tooLarge ? "too-large" : "nul";
    },
    get size() {
      return used;
    },
    since: (size) => (tooLarge || nul ? undefined : Buffer.from(buffer.subarray(size, used))),
    take: () => {
      let taken: Buffer;
      if (used <= KEPT / 4) {
        taken = Buffer.from(buffer.subarray(0, used));
      } else {
        taken = buffer.subarray(0, used);
        buffer = Buffer.allocUnsafeSlow(KEPT);
      }
      used = 0;
      return taken;
    },
  };
};

/** Called for each frame; the body is buffer[at…end) and stays valid afterwards. */
export type FrameHandler = (type: number, buffer: Buffer, at: number, end: number) => void;

/**
 * Cuts a stream of chunks into frames. Whole frames are handed over in place; only one that spans chunks is joined,
 * once. Throws on an impossible length.
 */
export const createFrameReader = (handle: FrameHandler): ((chunk: Buffer) => void) => {
  let parts: Buffer[] = [];
  let waiting = 0;
  let needed = 4;

  return (chunk) => {
    let data = chunk;
    if (waiting > 0) {
      parts.push(chunk);
      waiting += chunk.length;
      if (waiting < needed) return;
      data = Buffer.concat(parts, waiting);
      parts = [];
      waiting = 0;
    }
    let at = 0;
    needed = 4;
    while (data.length - at >= 4) {
      const length = data.readUInt32LE(at);
      if (length === 0 || length > MAX_FRAME) throw new RangeError(`a frame has an impossible length, ${length}`);
      needed = 4 + length;
      if (data.length - at < needed) break;
      handle(data[at + 4]!, data, at + 5, at + needed);
      at += needed;
      needed = 4;
    }
    if (at < data.length) {
      parts.push(data.subarray(at));
      waiting = data.length - at;
    }
  };
};
