import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errnoName, readExit, writeExit } from "../../../src/agent/spawner/events.ts";
import { createFrameReader, createFrameWriter } from "../../../src/agent/spawner/frames.ts";
import {
  type CommonEntries,
  type Exit,
  MAX_FRAME,
  Request,
  type StartRequest,
} from "../../../src/agent/spawner/protocol.ts";
import { createBodyReader, readStart, writeEnv, writeStart } from "../../../src/agent/spawner/requests.ts";

const text = fc.string({ unit: "grapheme" }).map((value) => value.replaceAll("\0", ""));
const u32 = fc.nat({ max: 0xffff_fffe });
const starts: fc.Arbitrary<StartRequest> = fc.record({
  id: u32,
  env: u32,
  graceMs: fc.nat({ max: 0x7fff_ffff }),
  after: fc.option(u32),
  cwd: text,
  stdout: fc.option(text),
  stderr: fc.option(text),
  tmpdir: fc.option(text),
  cgroup: fc.option(text),
  token: text,
  argv: fc.array(text, { minLength: 1 }),
  extraEnv: fc.array(text),
  cpus: fc.option(fc.array(u32)),
  append: fc.boolean(),
});

/** Cuts bytes into chunks of the given sizes, over and over. */
const cut = function* (bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
};

const read = (length: number): void => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  createFrameReader(() => undefined)(bytes);
};

describe("frames of the spawner", () => {
  it("come out as they went in, however the stream is cut", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(starts, { maxLength: 5 }), sizes, (requests, chunks) => {
        const writer = createFrameWriter();
        for (const request of requests) expect(writeStart(writer, request)).toBe("ok");
        const seen: StartRequest[] = [];
        const read = createFrameReader((type, buffer, at, end) => {
          expect(type).toBe(Request.START);
          seen.push(readStart(buffer, at, end));
        });
        for (const chunk of cut(writer.take(), chunks)) read(chunk);
        expect(seen).toEqual(requests);
      }),
    );
  });

  it("what many tasks have in common is written once, and read as if each had said it", () => {
    const entries = fc.array(text, { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(starts, { maxLength: 4 }), entries, entries, (requests, shared, ownEnv) => {
        const writer = createFrameWriter();
        const commonEnv: CommonEntries = { entries: shared };
        for (const request of requests) writeStart(writer, { ...request, commonEnv, ownEnv });
        const seen: StartRequest[] = [];
        createFrameReader((_, buffer, at, end) => seen.push(readStart(buffer, at, end)))(writer.take());
        expect(seen).toEqual(
          requests.map((request) => ({ ...request, extraEnv: [...request.extraEnv, ...shared, ...ownEnv] })),
        );
      }),
    );
    // what cannot be sent once can never be sent
    const commonEnv = { entries: ["A=\0"] };
    const request = fc.sample(starts, 1)[0]!;
    const writer = createFrameWriter();
    for (let i = 0; i < 2; i += 1) expect(writeStart(writer, { ...request, commonEnv })).toBe("nul");
    expect(writer.size).toBe(0);
  });

  it("that are cut short anywhere are refused", () => {
    fc.assert(
      fc.property(starts, (request) => {
        const writer = createFrameWriter();
        writeStart(writer, request);
        const bytes = writer.take();
        for (let end = 5; end < bytes.length; end++) expect(() => readStart(bytes, 5, end)).toThrow(RangeError);
        expect(() => readStart(Buffer.concat([bytes, Buffer.alloc(1)]), 5, bytes.length + 1)).toThrow(RangeError);
      }),
      { numRuns: 20 },
    );
  });

  it("never make the reader do more than throw a RangeError", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readStart(Buffer.from(bytes), 0, bytes.length);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });

  it("carry exits exactly", () => {
    const times = {
      startedAt: 1_700_000_000_000.25,
      endedAt: 1_700_000_000_001.5,
      maxRssBytes: 2 ** 40,
      cgroupPeakBytes: 2 ** 41,
      oomKills: 2 ** 32 - 1,
      userMs: 0.5,
      systemMs: 3,
      readBytes: 2 ** 42,
      writtenBytes: 2 ** 43,
    };
    const ends: Exit[] = [
      { id: 1, code: 137, signal: null, error: null, strays: 0, ended: false, ...times },
      { id: 0xffff_ffff, code: null, signal: 9, error: null, strays: 7, ended: true, ...times },
      {
        id: 3,
        code: 127,
        signal: null,
        error: { stage: "exec", errno: 2, code: "ENOENT" },
        strays: 0,
        ended: false,
        ...times,
      },
      {
        id: 4,
        code: null,
        signal: null,
        error: { stage: "tmpdir", errno: 122, code: "EDQUOT" },
        strays: 0,
        ended: false,
        ...times,
      },
    ];
    for (const exit of ends) {
      const writer = createFrameWriter();
      writeExit(writer, exit);
      const bytes = writer.take();
      expect(readExit(bytes, 5, bytes.length)).toEqual(exit);
      expect(() => readExit(bytes, 5, bytes.length - 1)).toThrow(RangeError);
    }
    expect(errnoName(9999)).toBe("E9999");
  });

  it("are taken back when they are too large or hold a NUL, and leave the others whole", () => {
    const writer = createFrameWriter();
    expect(writeEnv(writer, 1, ["A=1"])).toBe("ok");
    expect(writeEnv(writer, 2, ["A=\0"])).toBe("nul");
    expect(writeEnv(writer, 3, ["x".repeat(MAX_FRAME)])).toBe("too-large");
    expect(writeEnv(writer, 4, ["x".repeat(MAX_FRAME), "y"])).toBe("too-large");
    expect(writeEnv(writer, 5, ["x".repeat(MAX_FRAME - 14)])).toBe("ok"); // the largest possible
    expect(writeEnv(writer, 6, ["x".repeat(MAX_FRAME - 13)])).toBe("too-large");
    expect(writeEnv(writer, 7, ["ü".repeat(10)])).toBe("ok");
    const ids: number[] = [];
    const read = createFrameReader((_, buffer, at, end) => {
      const body = createBodyReader(buffer, at, end);
      ids.push(body.u32());
      expect(body.texts()).toHaveLength(1);
      body.done();
    });
    for (const chunk of cut(writer.take(), [65_536, 100])) read(chunk);
    expect(ids).toEqual([1, 5, 7]);
  });

  it("of an impossible length are refused at once", () => {
    expect(() => read(0)).toThrow(RangeError);
    expect(() => read(MAX_FRAME + 1)).toThrow(RangeError);
    expect(() => read(MAX_FRAME)).not.toThrow();
  });
});
