import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Script } from "node:vm";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cachePath, readCode, writeCode } from "../../src/code-cache.ts";

describe("the code that V8 compiled for a program", () => {
  let root: string;
  let path: string;
  let owner: number;
  const source = Buffer.from("(function(){return 6*7})");
  const code = new Script(source.toString()).createCachedData();
  const write = (uses: readonly string[] = []): void => writeCode(path, source, () => ({ code, uses }));
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slw-code-"));
    path = cachePath(join(root, "agent.cjs"));
    owner = (await stat(root)).uid;
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it("comes back as it was, and V8 takes it", async () => {
    write();
    const found = readCode(path, source, owner)!;
    expect(found.code.equals(code)).toBe(true);
    expect(found.uses).toEqual([]);
    const script = new Script(source.toString(), { cachedData: found.code });
    expect(script.cachedDataRejected).toBe(false);
    expect((script.runInThisContext() as () => number)()).toBe(42);
    expect(await readdir(root)).toHaveLength(1);
  });

  it("says in which uses of the program it was made", () => {
    write(["list", "run+array"]);
    const found = readCode(path, source, owner)!;
    expect(found.uses).toEqual(["list", "run+array"]);
    expect(found.code.equals(code)).toBe(true);
  });

  it("is a file: nobody waits for a FIFO in its place", () => {
    execFileSync("mkfifo", [path]);
    expect(readCode(path, source, owner)).toBeUndefined();
  });

  it("counts for nothing but the program that it was made from, whole and of the same owner", async () => {
    expect(readCode(path, source, owner)).toBeUndefined();
    write(["list"]);
    // V8 itself compares no more than the length
    expect(readCode(path, Buffer.from("(function(){return 7*8})"), owner)).toBeUndefined();
    expect(readCode(path, source, owner + 1)).toBeUndefined();
    const bytes = await readFile(path);
    const other = Buffer.from(bytes);
    other[bytes.length - 1]! ^= 1;
    const head = Buffer.from(bytes);
    head[4]! ^= 1;
    for (const damaged of [
      bytes.subarray(0, -1),
      bytes.subarray(0, 20),
      Buffer.alloc(0),
      Buffer.alloc(8),
      other,
      head,
    ]) {
      await writeFile(path, damaged);
      expect(readCode(path, source, owner)).toBeUndefined();
    }
    write();
    expect(readCode(path, source, owner)).toBeDefined();
  });

  it("is not even gathered where nobody may write, and nobody minds", async () => {
    writeCode(join(root, "no", "such", "place"), source, () => expect.fail("it was gathered"));
    expect(await readdir(root)).toEqual([]);
  });

  it("leaves nothing where it cannot be put", async () => {
    await mkdir(path);
    write();
    expect(await readdir(root)).toHaveLength(1);
    expect(await readdir(path)).toEqual([]);
  });
});
