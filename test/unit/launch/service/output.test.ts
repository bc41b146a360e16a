import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OutputStore, createOutputStore } from "../../../../src/launch/service/output.ts";

let root: string;
let store: OutputStore;
const files = (): { stdout: string; stderr: string } => ({ stdout: join(root, "out"), stderr: join(root, "err") });

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-output-"));
  store = createOutputStore(join(root, "kept"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function* body(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

const read = async (
  stream: "stdout" | "stderr",
  source: { follow?: boolean; isOver?: () => boolean; launch?: number } = {},
): Promise<string> => {
  const parts: Uint8Array[] = [];
  const { follow = false, isOver = () => false, launch = 1 } = source;
  const signal = new AbortController().signal;
  for await (const part of store.read(launch, stream, { files: files(), follow, signal, isOver })) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
};

describe("output of launches", () => {
  it("rule 4: pieces in any overlap, sent twice or over a restart, are kept once and in order", async () => {
    const text = "abcdefghijklmnopqrstuvwxyz0123456789";
    const piece = fc.record({ from: fc.nat(text.length), length: fc.nat(12), restart: fc.boolean() });
    let launch = 10;
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        launch += 1;
        let size = 0;
        for (const { from, length, restart } of pieces) {
          if (restart) store = createOutputStore(join(root, "kept"));
          const sent = text.slice(from, from + length);
          const answer = await store.receive(launch, { stream: "stdout", rank: 0, offset: from }, body(sent));
          if (from <= size) size = Math.max(size, from + sent.length);
          expect(answer.size).toBe(size);
        }
        expect(await read("stdout", { launch })).toBe(text.slice(0, size));
      }),
      { numRuns: 40 },
    );
  });

  it("a write that failed half way leaves nothing behind that the next piece would follow", async () => {
    const send = (offset: number, text: string) =>
      store.receive(1, { stream: "stdout", rank: 0, offset }, body(text)).then(({ size }) => size);
    expect(await send(0, "abc")).toBe(3);
    await appendFile(join(root, "kept", "1", "stdout.0"), "de");
    expect(await send(3, "def")).toBe(6);
    expect(await read("stdout")).toBe("abcdef");
    await appendFile(join(root, "kept", "1", "stdout.0"), "gh");
    store = createOutputStore(join(root, "kept"));
    expect(await send(6, "ghi")).toBe(9);
    expect(await read("stdout")).toBe("abcdefghi");
  });

  it("shows ranks by whole lines while they write, and at the end what only the job's own file has", async () => {
    let over = false;
    await store.receive(1, { stream: "stderr", rank: 1, offset: 0 }, body("b1\nb2"));
    await store.receive(1, { stream: "stderr", rank: 0, offset: 0 }, body("a1\n"));
    const all = read("stderr", { follow: true, isOver: () => over });
    await store.receive(1, { stream: "stderr", rank: 1, offset: 5 }, body(" end\n"));
    await writeFile(files().stderr, "b1\na1\nb2 end\nslurmstepd: error: CANCELLED\n");
    await store.collect(1, files());
    over = true;
    const lines = (await all).split("\n");
    expect(lines.toSorted()).toEqual(["", "a1", "b1", "b2 end", "slurmstepd: error: CANCELLED"]);
    expect(lines.at(-2)).toBe("slurmstepd: error: CANCELLED");
    // the job's own file has everything, so later readers get that
    expect(await read("stderr", { isOver: () => true })).toBe("b1\na1\nb2 end\nslurmstepd: error: CANCELLED\n");
  });

  it("falls back to the job's files where nothing was sent, while it runs and after its directory is gone", async () => {
    await writeFile(files().stdout, "so far\n");
    expect(await read("stdout")).toBe("so far\n");
    let over = false;
    const all = read("stdout", { follow: true, isOver: () => over });
    await writeFile(files().stdout, "so far\nand the end\n");
    await store.collect(1, files());
    over = true;
    expect(await all).toBe("so far\nand the end\n");
    await rm(files().stdout);
    expect(await read("stdout", { isOver: () => true })).toBe("so far\nand the end\n");
    expect(store.sizes(1)).toMatchObject({ stdout: 19, stderr: 0, live: false });
    await store.remove(1);
    expect(await read("stdout", { isOver: () => true })).toBe("");
  });

  it("gives head and tail for an excerpt, also of what ranks sent alone", async () => {
    await store.receive(1, { stream: "stderr", rank: 0, offset: 0 }, body("from the rank"));
    expect(await store.tail(1, "stderr", files(), 1000)).toBe("from the rank");
    await writeFile(files().stderr, `head${"x".repeat(50_000)}tail`);
    await store.collect(1, files());
    const text = await store.tail(1, "stderr", files(), 1000);
    expect(text).toHaveLength(2000);
    expect(text).toMatch(/^head.*tail$/);
  });

  it("refuses more ranks and longer pieces than a job has", async () => {
    await expect(store.receive(1, { stream: "stdout", rank: 1e6, offset: 0 }, body("x"))).rejects.toMatchObject({
      code: "bad-request",
    });
    const big = body("x".repeat(5 * 1024 * 1024));
    await expect(store.receive(1, { stream: "stdout", rank: 0, offset: 0 }, big)).rejects.toMatchObject({
      code: "too-large",
      message: expect.stringContaining("the piece is 5M, more than the 4M allowed"),
    });
  });
});
