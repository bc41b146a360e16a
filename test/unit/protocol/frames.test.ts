import fc from "fast-check";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { packr } from "../../../src/core/codec.ts";
import {
  FrameError,
  MAX_FRAME_UNKNOWN,
  createChannel,
  createFrameReader,
  encodeFrame,
} from "../../../src/protocol/frames.ts";
import { showsToken } from "../../../src/protocol/token.ts";

describe("frames", () => {
  it("come out whole however the stream is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 300 }), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        (messages, cuts) => {
          const bytes = Buffer.concat(messages.map((message) => encodeFrame(message)));
          const reader = createFrameReader(10_000);
          const got: unknown[] = [];
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const size = cuts[i % cuts.length]!;
            reader.push(bytes.subarray(at, at + size), (body) => got.push(packr.unpack(body)));
            at += size;
          }
          expect(got).toEqual(messages);
        },
      ),
    );
  });

  it("rule 11: a frame larger than allowed is refused by its header, before anything is kept", () => {
    const reader = createFrameReader(1000);
    const header = Buffer.alloc(4);
    header.writeUInt32LE(2 ** 31);
    expect(() => reader.push(header, () => undefined)).toThrow(FrameError);
  });

  it("rule 11: a long hello is read from one whose first bytes show the token, and from nobody else", () => {
    const token = "s3cret-".repeat(6);
    const held = [{ run: 1, rows: Array.from({ length: 50_000 }, (_, i) => i), attempts: Array(50_000).fill(1) }];
    const read = (hello: object): unknown[] => {
      const bytes = encodeFrame(hello);
      expect(bytes.length).toBeGreaterThan(MAX_FRAME_UNKNOWN);
      const reader = createFrameReader(MAX_FRAME_UNKNOWN, (head) => showsToken(head, token));
      const got: unknown[] = [];
      for (let at = 0; at < bytes.length; at += 300)
        reader.push(bytes.subarray(at, at + 300), (body) => got.push(packr.unpack(body)));
      return got;
    };
    // as agents write it, and as a test does
    for (const hello of [
      { t: "hello", token, version: 1, held },
      { t: "hello", version: 1, slipway: "0.1.0", token, held },
    ])
      expect(read(hello)).toEqual([hello]);
    for (const hello of [
      { t: "hello", token: "", held },
      { t: "hello", token: token.slice(1), held },
      { t: "hello", token: `${token}x`, held },
      { t: "hello", token: [token], held },
      { t: "hello", held, token },
      { t: "hello", held },
    ])
      expect(() => read(hello)).toThrow(FrameError);
  });

  it("a frame in single bytes comes out whole", () => {
    const reader = createFrameReader(1_000_000);
    const bytes = encodeFrame("x".repeat(100_000));
    const got: unknown[] = [];
    for (const byte of bytes) reader.push(Buffer.from([byte]), (body) => got.push(packr.unpack(body)));
    expect(got).toEqual(["x".repeat(100_000)]);
  });

  it("rule 11: a peer that does not read is dropped, not waited for", async () => {
    const stuck = new PassThrough({ highWaterMark: 1 });
    let reason = "";
    const channel = createChannel<unknown, unknown>(
      stuck,
      () => undefined,
      (why) => {
        reason = why;
      },
    );
    const big = "x".repeat(10_000_000);
    for (let i = 0; i < 40 && channel.open; i += 1) channel.send({ big });
    expect(channel.open).toBe(false);
    expect(reason).toBe("the other side does not read");
  });

  it("tells its end once", () => {
    const socket = new PassThrough();
    let ends = 0;
    const channel = createChannel<unknown, unknown>(
      socket,
      () => undefined,
      () => {
        ends += 1;
      },
    );
    channel.destroy("a");
    channel.destroy("b");
    channel.close();
    expect(ends).toBe(1);
  });
});
