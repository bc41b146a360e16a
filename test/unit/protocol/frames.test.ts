import fc from "fast-check";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { packr } from "../../../src/core/codec.ts";
import { FrameError, createChannel, createFrameReader, encodeFrame } from "../../../src/protocol/frames.ts";

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
