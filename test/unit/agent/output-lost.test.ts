import * as fc from "fast-check";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addToGap, createTailStock, openGap, sideOf, TAIL_BYTES, takeTail } from "../../../src/agent/output/gap.ts";
import { openOutputStream, type OutputStreamOptions, type TaskOutput } from "../../../src/agent/output/stream.ts";
import { Lost } from "../../../src/core/output-lost.ts";
import { readOutput } from "../../../src/logs/output-reader.ts";
import { until } from "../../until.ts";

let directory: string;
let files = 0;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-lost-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const noSpace = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });

/** A disk of this many bytes; `size` may change. */
const smallDisk = (size: number) => {
  const disk = {
    size,
    options: {
      retryMs: 0,
      resumeBytes: 0,
      write: async (handle, buffers, at) => {
        const room = disk.size - at;
        if (room <= 0) throw noSpace;
        const all = Buffer.concat(buffers).subarray(0, room);
        return (await handle.write(all, 0, all.length, at)).bytesWritten;
      },
    } satisfies OutputStreamOptions,
  };
  return disk;
};

const make = (options?: OutputStreamOptions) => openOutputStream(join(directory, `agent-${(files += 1)}.out`), options);

const read = async (path: string, output: TaskOutput, fd: 1 | 2): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of readOutput(path, output.lastAt, { fd })) parts.push(part);
  return Buffer.concat(parts).toString("latin1");
};

const letters = (count: number, from = 0): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, i) => 97 + ((i + from) % 26)));

const MARKER = /\n?\[slipway: (\d+) bytes are missing here: [^\]]*\]\n/g;
const ownBytes = (text: string): number => text.replace(MARKER, "").length;

describe("limits of output", () => {
  it("keep the head of a task up to its limit, then the last 64 KB of each stream, with a line between that says how much is missing", async () => {
    const stream = await make();
    stream.limit(1, { perTask: 1000, perRun: Infinity, over: false });
    const output = stream.begin(1, 0, 1);
    const all = letters(300_000);
    for (let at = 0; at < all.length; at += 7000) stream.write(output, 1, all.subarray(at, at + 7000));
    stream.write(output, 2, Buffer.from("all of this\n"));
    const ended = stream.end(output);
    await ended.flushed;
    const missing = 300_000 - 1000 - TAIL_BYTES;
    expect(await read(stream.path, output, 1)).toBe(
      `${all.toString("latin1", 0, 1000)}\n[slipway: ${missing} bytes are missing here: more than limits.output-per-task]\n${all.toString("latin1", 300_000 - TAIL_BYTES)}`,
    );
    expect(await read(stream.path, output, 2)).toBe("all of this\n");
    expect(ended).toMatchObject({
      stdoutBytes: 1000 + TAIL_BYTES,
      stderrBytes: 12,
      lost: { stdout: missing, stderr: 0, reason: Lost.PER_TASK },
    });
    await stream.close();
  });

  it("lose nothing where all that is beyond them fits into the last 64 KB", async () => {
    const stream = await make();
    stream.limit(1, { perTask: 10, perRun: Infinity, over: false });
    const output = stream.begin(1, 0, 1);
    for (let i = 0; i < 100; i += 1) stream.write(output, i % 2 === 0 ? 1 : 2, letters(100, i));
    await stream.end(output).flushed;
    expect(output).toMatchObject({ stdoutBytes: 5000, stderrBytes: 5000, lost: null });
    expect(await read(stream.path, output, 1)).not.toMatch(MARKER);
    await stream.close();
  });

  it("hold for a run over all its tasks, and for those of other agents when the server says so", async () => {
    const stream = await make();
    stream.limit(1, { perTask: Infinity, perRun: 1500, over: false });
    const [first, second, other] = [stream.begin(1, 0, 1), stream.begin(1, 1, 1), stream.begin(2, 0, 1)];
    stream.write(first, 1, letters(1000));
    stream.write(second, 1, letters(200_000));
    stream.write(other, 1, letters(200_000));
    for (const output of [first, second, other]) await stream.end(output).flushed;
    expect(first.lost).toBeNull();
    expect(second.lost).toEqual({ stdout: 200_000 - 500 - TAIL_BYTES, stderr: 0, reason: Lost.PER_RUN });
    expect(other.lost).toBeNull();
    stream.limit(2, { perTask: Infinity, perRun: 1e9, over: true });
    const late = stream.begin(2, 1, 1);
    stream.write(late, 1, letters(200_000));
    await stream.end(late).flushed;
    expect(late).toMatchObject({ stdoutBytes: TAIL_BYTES, lost: { reason: Lost.PER_RUN } });
    await stream.close();
  });

  it("take little memory for tails, however many tasks are over theirs", () => {
    const stock = createTailStock(4 * TAIL_BYTES);
    const gaps = Array.from({ length: 20 }, () => openGap(Lost.PER_TASK));
    for (const gap of gaps) for (let i = 0; i < 3; i += 1) addToGap(gap, 1, letters(TAIL_BYTES, i), stock);
    expect(stock.used).toBeLessThanOrEqual(stock.limit);
    const kept = gaps.map((gap) => takeTail(gap, 1, stock).length);
    expect(kept.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(0);
    for (const [i, gap] of gaps.entries()) expect(kept[i]! + sideOf(gap, 1).missing).toBe(3 * TAIL_BYTES);
    expect(stock.used).toBe(0);
  });
});

describe("a full disk", () => {
  it("costs only what did not get into the file: whole chunks before that stay, and the rest of the last is given back", async () => {
    const disk = smallDisk(200_000);
    const stream = await make(disk.options);
    const output = stream.begin(1, 0, 1);
    stream.write(output, 1, letters(500_000));
    await stream.flush();
    expect(output.stdoutBytes).toBe(3 * 65_536);
    expect(statSync(stream.path).size).toBe(3 * (65_536 + 32));
    disk.size = 1e9;
    stream.write(output, 1, Buffer.from("room again\n"));
    await stream.end(output).flushed;
    const text = await read(stream.path, output, 1);
    const missing = 500_000 - 3 * 65_536;
    expect(text.endsWith(`\n[slipway: ${missing} bytes are missing here: no room on the disk]\nroom again\n`)).toBe(
      true,
    );
    expect(output.lost).toEqual({ stdout: missing, stderr: 0, reason: Lost.NO_ROOM });
    expect(ownBytes(text)).toBe(output.stdoutBytes);
    await stream.close();
  });

  it("keeps the last that was written meanwhile, if there is room again before the task ends", async () => {
    const disk = smallDisk(100);
    const stream = await make({ ...disk.options, retryMs: 20 });
    const output = stream.begin(1, 0, 1);
    stream.write(output, 1, letters(100));
    await stream.flush();
    for (let i = 0; i < 10; i += 1) stream.write(output, 1, letters(10_000, i));
    disk.size = 1e9;
    await until("there is room again", () => {
      if (stream.failed === null) return true;
      stream.write(output, 2, Buffer.from("."));
      return undefined;
    });
    await stream.end(output).flushed;
    const text = await read(stream.path, output, 1);
    expect(ownBytes(text)).toBe(TAIL_BYTES);
    expect(output.lost).toEqual({ stdout: 100_100 - TAIL_BYTES, stderr: 0, reason: Lost.NO_ROOM });
    await stream.close();
  });

  it("is not tried again before there is more room than the journal is lent at once", async () => {
    let tries = 0;
    const stream = await make({
      retryMs: 0,
      resumeBytes: Number.MAX_SAFE_INTEGER,
      write: () => {
        tries += 1;
        return Promise.reject(noSpace);
      },
    });
    for (let row = 0; row < 20; row += 1) {
      const output = stream.begin(1, row, 1);
      stream.write(output, 1, letters(10));
      await stream.end(output).flushed;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(tries).toBe(1);
    await stream.close();
  });
});

describe("properties of what is not kept", () => {
  it("whatever is written, limited or does not fit: kept and lost make up all, the head is a head and the end an end", async () => {
    const write = fc.record({
      fd: fc.constantFrom(1 as const, 2 as const),
      size: fc.oneof(fc.nat(20), fc.constantFrom(5000, 65_535, 65_536, 65_537, 200_000)),
      flush: fc.nat(3),
      disk: fc.option(fc.constantFrom(0, 100_000, 400_000, 1e9), { freq: 4 }),
    });
    const limits = fc.record({
      perTask: fc.constantFrom(0, 10, 70_000, Infinity),
      perRun: fc.constantFrom(0, 100_000, Infinity),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 20 }), limits, async (writes, limit) => {
        const disk = smallDisk(1e9);
        const stream = await make(disk.options);
        stream.limit(1, { ...limit, over: false });
        const output = stream.begin(1, 0, 1);
        const all = { 1: Buffer.alloc(0), 2: Buffer.alloc(0) };
        for (const each of writes) {
          if (each.disk !== null) disk.size = each.disk;
          const bytes = letters(each.size, all[each.fd].length);
          all[each.fd] = Buffer.concat([all[each.fd], bytes]);
          stream.write(output, each.fd, bytes);
          if (each.flush === 0) await stream.flush();
        }
        await stream.end(output).flushed;
        await stream.close();
        const lost = output.lost ?? { stdout: 0, stderr: 0, reason: 0 };
        for (const [fd, kept, gone] of [
          [1, output.stdoutBytes, lost.stdout],
          [2, output.stderrBytes, lost.stderr],
        ] as const) {
          expect(kept + gone).toBe(all[fd].length);
          const text = await read(stream.path, output, fd);
          expect(ownBytes(text)).toBe(kept);
          // every piece between markers is a piece of the whole, in order, and markers give the distances
          let at = 0;
          const parts = text.split(/\n?\[slipway: (\d+) bytes are missing here: [^\]]*\]\n/);
          for (const [i, part] of parts.entries()) {
            if (i % 2 === 1) at += Number(part);
            else {
              expect(all[fd].toString("latin1", at, at + part.length) === part).toBe(true);
              at += part.length;
            }
          }
          if (gone > 0) expect(lost.reason).toBeGreaterThan(0);
          else expect(at).toBe(all[fd].length);
        }
      }),
      { numRuns: 60 },
    );
  });
});
