import * as fc from "fast-check";
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync, openSync, writeSync, closeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openOutputStream, type OutputStream, type TaskOutput } from "../../../src/agent/output/stream.ts";
import {
  CHUNK_HEADER_BYTES,
  CHUNK_MAX_BYTES,
  decodeChunkHeader,
  encodeChunkHeader,
} from "../../../src/core/output-format.ts";
import { Lost } from "../../../src/core/output-lost.ts";
import { readOutput, readTail, type ReadOutputOptions } from "../../../src/logs/output-reader.ts";
import { until } from "../../until.ts";

let directory: string;
let path: string;
let stream: OutputStream;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "slipway-output-"));
  path = join(directory, "agent.out");
  stream = await openOutputStream(path);
});
afterEach(async () => {
  await stream.close();
  rmSync(directory, { recursive: true, force: true });
});

const read = async (lastAt: number, options: ReadOutputOptions = { fd: "both" }): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of readOutput(path, lastAt, options)) parts.push(part);
  return Buffer.concat(parts).toString("latin1");
};

const noSpace = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });

describe("chunk headers", () => {
  const header = {
    run: 4_294_967_295,
    row: 9_999_999,
    attempt: 3,
    fd: 2,
    flags: 0,
    length: 65_536,
    prev: 2 ** 45,
  } as const;

  it("come back as they were", () => {
    const bytes = Buffer.alloc(100);
    encodeChunkHeader(bytes, 7, header);
    expect(decodeChunkHeader(bytes, 7)).toEqual(header);
    encodeChunkHeader(bytes, 7, { ...header, prev: -1, attempt: 65_537 });
    expect(decodeChunkHeader(bytes, 7)).toEqual({ ...header, prev: -1, attempt: 1 });
  });

  it("notice any changed bit and a short file", () => {
    const bytes = Buffer.alloc(CHUNK_HEADER_BYTES);
    encodeChunkHeader(bytes, 0, header);
    for (let bit = 0; bit < CHUNK_HEADER_BYTES * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(typeof decodeChunkHeader(changed)).toBe("string");
    }
    expect(decodeChunkHeader(bytes.subarray(0, 31))).toContain("ends inside");
  });

  it("refuse what no agent writes, even with a right checksum", () => {
    const bytes = Buffer.alloc(CHUNK_HEADER_BYTES);
    for (const wrong of [{ length: 65_537 }, { prev: 0.5 }, { prev: -2 }, { fd: 3 as 2 }]) {
      encodeChunkHeader(bytes, 0, { ...header, ...wrong });
      expect(typeof decodeChunkHeader(bytes)).toBe("string");
    }
  });
});

describe("openOutputStream", () => {
  it("keeps the output of interleaved tasks apart, and the order of both descriptors", async () => {
    const a = stream.begin(1, 0, 1);
    const b = stream.begin(1, 1, 1);
    stream.write(a, 1, Buffer.from("a1 "));
    stream.write(b, 1, Buffer.from("b1 "));
    stream.write(a, 1, Buffer.from("a2 "));
    stream.write(a, 2, Buffer.from("oops "));
    stream.write(a, 1, Buffer.from("a3"));
    const ended = [stream.end(a), stream.end(b)];
    await Promise.all(ended.map((each) => each.flushed));
    expect(await read(a.lastAt)).toBe("a1 a2 oops a3");
    expect(await read(a.lastAt, { fd: 1 })).toBe("a1 a2 a3");
    expect(await read(a.lastAt, { fd: 2 })).toBe("oops ");
    expect(await read(b.lastAt)).toBe("b1 ");
    expect(ended[0]).toMatchObject({ stdoutBytes: 8, stderrBytes: 5, lost: null });
    expect(stream.pending).toBe(0);
  });

  it("costs nothing for a task without output", async () => {
    const ended = stream.end(stream.begin(1, 0, 1));
    expect(ended).toMatchObject({ lastAt: -1, flushed: null, stdoutBytes: 0, stderrBytes: 0, lost: null });
    await stream.flush();
    expect(statSync(path).size).toBe(0);
    expect(await read(-1)).toBe("");
  });

  it("gives out a result only when its output is in the file", async () => {
    const output = stream.begin(1, 0, 1);
    stream.write(output, 1, Buffer.from("x"));
    const { flushed } = stream.end(output);
    expect(flushed).not.toBeNull();
    expect(stream.tail(output)).toBe(-1);
    await flushed;
    expect(stream.tail(output)).toBe(0);
    expect(statSync(path).size).toBe(CHUNK_HEADER_BYTES + 1);
    expect(stream.end(output).flushed).toBeNull();
  });

  it("joins small writes into one chunk and copies before it returns", async () => {
    const output = stream.begin(1, 0, 1);
    const reused = Buffer.alloc(1);
    for (let nth = 0; nth < 1000; nth++) {
      reused[0] = 0x61 + (nth % 26);
      stream.write(output, 1, reused);
    }
    await stream.end(output).flushed;
    expect(statSync(path).size).toBe(CHUNK_HEADER_BYTES + 1000);
    expect((await read(output.lastAt)).startsWith("abcdefg")).toBe(true);
  });

  it("lets output of a running task be read, without an end", async () => {
    const live = await openOutputStream(join(directory, "live"), { flushMs: 5 });
    const output = live.begin(1, 0, 1);
    live.write(output, 1, Buffer.from("one "));
    await until("the first piece is written", () => live.tail(output) >= 0);
    const first = live.tail(output);
    live.write(output, 2, Buffer.from("two"));
    await live.flush();
    path = live.path;
    expect(await read(first)).toBe("one ");
    expect(await read(live.tail(output), { fd: "both", since: first })).toBe("two");
    expect(await read(live.tail(output))).toBe("one two");
    await live.close();
  });

  it("goes on behind what an earlier process left, torn or not", async () => {
    await stream.close();
    writeFileSync(path, "torn");
    stream = await openOutputStream(path, { sync: true });
    const output = stream.begin(1, 0, 1);
    stream.write(output, 1, Buffer.from("new"));
    await stream.end(output).flushed;
    expect(output.lastAt).toBe(4);
    expect(await read(output.lastAt)).toBe("new");
  });

  it("finishes short writes", async () => {
    const slow = await openOutputStream(join(directory, "short"), {
      write: async (handle, buffers, at) =>
        (await handle.write(buffers[0]!.subarray(0, 7), 0, undefined, at)).bytesWritten,
    });
    const output = slow.begin(1, 0, 1);
    slow.write(output, 1, Buffer.from("0123456789"));
    slow.write(output, 2, Buffer.from("abc"));
    await slow.end(output).flushed;
    path = slow.path;
    expect(await read(output.lastAt)).toBe("0123456789abc");
    await slow.close();
  });

  it("asks for patience above the high-water mark", async () => {
    const small = await openOutputStream(join(directory, "small"), { highWaterBytes: 100_000 });
    const output = small.begin(1, 0, 1);
    small.write(output, 1, Buffer.alloc(60_000, 1));
    expect(small.drained()).toBeNull();
    small.write(output, 1, Buffer.alloc(60_000, 2));
    expect(small.pending).toBeGreaterThan(120_000);
    const drained = small.drained();
    expect(drained).not.toBeNull();
    await drained;
    expect(small.pending).toBe(0);
    for (let nth = 0; nth < 50; nth++) small.write(output, 1, Buffer.alloc(60_000));
    expect(small.pending).toBeLessThan(1_800_000);
    expect(small.end(output).lost).toMatchObject({ reason: Lost.NO_ROOM });
    await small.close();
  });

  it("drops and counts what cannot be written, keeps chains whole, and recovers", async () => {
    let broken = false;
    const flaky = await openOutputStream(join(directory, "flaky"), {
      retryMs: 0,
      resumeBytes: 0,
      write: async (handle, buffers, at) => {
        if (!broken) return (await handle.writev(buffers, at)).bytesWritten;
        // A full disk takes some of the bytes first.
        await handle.write(Buffer.from("garbage"), 0, undefined, at);
        throw noSpace;
      },
    });
    const long = flaky.begin(1, 0, 1);
    flaky.write(long, 1, Buffer.from("before "));
    await flaky.flush();
    broken = true;
    const victim = flaky.begin(1, 1, 1);
    flaky.write(victim, 2, Buffer.from("gone"));
    const { flushed } = flaky.end(victim);
    flaky.write(long, 1, Buffer.from("lost "));
    await Promise.all([flushed, flaky.flush()]);
    expect(victim).toMatchObject({ lastAt: -1, lost: { stdout: 0, stderr: 4, reason: Lost.NO_ROOM }, stderrBytes: 0 });
    expect(flaky.failed).toBe(noSpace);
    expect(flaky.dropped).toBe(9);
    expect(flaky.pending).toBe(0);
    broken = false;
    flaky.write(long, 1, Buffer.from("after"));
    await flaky.end(long).flushed;
    path = flaky.path;
    expect(flaky.failed).toBeNull();
    expect(long).toMatchObject({ lost: { stdout: 5, stderr: 0, reason: Lost.NO_ROOM }, stdoutBytes: 12 });
    expect(await read(long.lastAt)).toBe("before \n[slipway: 5 bytes are missing here: no room on the disk]\nafter");
    await flaky.close();
  });

  it("drops while failed, without trying again too soon", async () => {
    let tries = 0;
    const full = await openOutputStream(join(directory, "full"), {
      write: () => {
        tries++;
        return Promise.reject(noSpace);
      },
    });
    for (let row = 0; row < 5; row++) {
      const output = full.begin(1, row, 1);
      full.write(output, 1, Buffer.from("x"));
      await full.end(output).flushed;
      expect(output).toMatchObject({ lost: { stdout: 1 }, stdoutBytes: 0, lastAt: -1 });
    }
    expect(tries).toBe(1);
    expect(full.dropped).toBe(5);
    await full.close();
    const late = full.begin(1, 9, 1);
    full.write(late, 1, Buffer.from("x"));
    expect(full.end(late)).toMatchObject({ lost: { stdout: 1 }, flushed: null });
  });

  it("survives a real full disk", async () => {
    const full = await openOutputStream("/dev/full");
    const output = full.begin(1, 0, 1);
    full.write(output, 1, Buffer.from("x"));
    await full.end(output).flushed;
    expect(output.lost).toEqual({ stdout: 1, stderr: 0, reason: Lost.NO_ROOM });
    expect(full.failed).toMatchObject({ code: "ENOSPC" });
    await full.close();
  });

  it("says clearly when the file cannot be made", async () => {
    await expect(openOutputStream(join(directory, "no/such/dir"))).rejects.toThrow("ENOENT");
  });

  it("takes 50,000 outputs of 10 bytes before the test's time is over", async () => {
    const outputs: TaskOutput[] = [];
    for (let row = 0; row < 50_000; row++) {
      const output = stream.begin(1, row, 1);
      stream.write(output, 1, Buffer.from(String(row).padStart(10)));
      outputs.push(stream.end(output));
      if (row % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await stream.flush();
    expect((await read(outputs[49_999]!.lastAt)).trim()).toBe("49999");
    expect((await read(outputs[123]!.lastAt)).trim()).toBe("123");
  });
});

describe("properties of output streams", () => {
  it("give back every byte in order, whatever the sizes", async () => {
    const size = fc.oneof(fc.nat(20), fc.constantFrom(65_535, 65_536, 65_537, 200_000));
    const write = fc.record({ task: fc.nat(3), fd: fc.constantFrom(1 as const, 2 as const), size, flush: fc.nat(5) });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 25 }), fc.nat(300_000), async (writes, tailBytes) => {
        const outputs = [0, 1, 2, 3].map((row) => stream.begin(++run, row, 1));
        const expected = outputs.map(() => ({ both: [] as Buffer[], 1: [] as Buffer[], 2: [] as Buffer[] }));
        for (const [nth, each] of writes.entries()) {
          const bytes = Buffer.alloc(each.size, 33 + (nth % 90));
          stream.write(outputs[each.task]!, each.fd, bytes);
          expected[each.task]!.both.push(bytes);
          expected[each.task]![each.fd].push(bytes);
          if (each.flush === 0) await stream.flush();
        }
        await Promise.all(outputs.map((output) => stream.end(output).flushed));
        for (const [nth, output] of outputs.entries()) {
          for (const fd of ["both", 1, 2] as const) {
            const all = Buffer.concat(expected[nth]![fd]);
            expect((await read(output.lastAt, { fd })) === all.toString("latin1")).toBe(true);
            const tail = await readTail(path, output.lastAt, fd, tailBytes);
            expect(tail.equals(all.subarray(Math.max(0, all.length - tailBytes)))).toBe(true);
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});

const written = async (): Promise<TaskOutput> => {
  const output = stream.begin(7, 3, 1);
  stream.write(output, 1, Buffer.alloc(3 * CHUNK_MAX_BYTES, "a"));
  const ended = stream.end(output);
  await ended.flushed;
  return ended;
};

describe("readOutput", () => {
  it("names file and offset of a damaged chunk", async () => {
    const { lastAt } = await written();
    const middle = CHUNK_HEADER_BYTES + CHUNK_MAX_BYTES;
    const fd = openSync(path, "r+");
    writeSync(fd, "!", middle + 5);
    closeSync(fd);
    await expect(read(lastAt)).rejects.toMatchObject({ code: "output-damaged", facts: { path, offset: middle } });
    expect((await readTail(path, lastAt, "both", 10)).toString()).toBe("aaaaaaaaaa");
  });

  it("notices a cut, a missing file and an offset that is no chunk", async () => {
    const { lastAt } = await written();
    await expect(read(lastAt - 1)).rejects.toMatchObject({ code: "output-damaged", facts: { offset: lastAt - 1 } });
    truncateSync(path, lastAt + 100);
    await expect(read(lastAt)).rejects.toThrow(`${path} at offset ${lastAt}: the file ends inside the chunk`);
    truncateSync(path, lastAt + 10);
    await expect(read(lastAt)).rejects.toThrow("ends inside a header");
    rmSync(path);
    await expect(read(lastAt)).rejects.toMatchObject({ code: "output-damaged", facts: { path, offset: lastAt } });
  });

  it("refuses a chain that leads forward or into another task", async () => {
    const bytes = Buffer.alloc(2 * CHUNK_HEADER_BYTES);
    const header = { run: 1, row: 1, attempt: 1, fd: 1, flags: 0, length: 0, prev: -1 } as const;
    encodeChunkHeader(bytes, 0, { ...header, row: 2 });
    encodeChunkHeader(bytes, CHUNK_HEADER_BYTES, { ...header, prev: 0 });
    writeFileSync(path, bytes);
    await expect(read(CHUNK_HEADER_BYTES)).rejects.toThrow("offset 0");
    encodeChunkHeader(bytes, CHUNK_HEADER_BYTES, { ...header, prev: CHUNK_HEADER_BYTES });
    writeFileSync(path, bytes);
    await expect(read(CHUNK_HEADER_BYTES)).rejects.toThrow("said to be at");
  });

  it("closes the file when its reader leaves early", async () => {
    const { lastAt } = await written();
    for await (const part of readOutput(path, lastAt, { fd: 1 })) {
      expect(part.length).toBe(CHUNK_MAX_BYTES);
      break;
    }
  });
});
