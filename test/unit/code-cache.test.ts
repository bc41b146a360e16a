import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Script } from "node:vm";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cachePath, readCode, writeCode } from "../../src/code-cache.ts";

describe("the code that V8 compiled for an agent", () => {
  let root: string;
  let path: string;
  let owner: number;
  const source = Buffer.from("(function(){return 6*7})");
  const code = new Script(source.toString()).createCachedData();
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slw-code-"));
    path = cachePath(join(root, "agent.cjs"));
    owner = (await stat(root)).uid;
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it("comes back as it was, and V8 takes it", async () => {
    writeCode(path, source, code);
    const found = readCode(path, source, owner)!;
    expect(found.equals(code)).toBe(true);
    const script = new Script(source.toString(), { cachedData: found });
    expect(script.cachedDataRejected).toBe(false);
    expect((script.runInThisContext() as () => number)()).toBe(42);
    expect(await readdir(root)).toHaveLength(1);
  });

  it("is a file: nobody waits for a FIFO in its place", () => {
    execFileSync("mkfifo", [path]);
    expect(readCode(path, source, owner)).toBeUndefined();
  });

  it("counts for nothing but the program that it was made from, whole and of the same owner", async () => {
    expect(readCode(path, source, owner)).toBeUndefined();
    writeCode(path, source, code);
    // V8 itself compares no more than the length
    expect(readCode(path, Buffer.from("(function(){return 7*8})"), owner)).toBeUndefined();
    expect(readCode(path, source, owner + 1)).toBeUndefined();
    const bytes = await readFile(path);
    const other = Buffer.from(bytes);
    other[bytes.length - 1]! ^= 1;
    for (const damaged of [bytes.subarray(0, -1), bytes.subarray(0, 20), Buffer.alloc(0), other]) {
      await writeFile(path, damaged);
      expect(readCode(path, source, owner)).toBeUndefined();
    }
    writeCode(path, source, code);
    expect(readCode(path, source, owner)).toBeDefined();
  });

  it("is not written where nobody may write, and nobody minds", async () => {
    writeCode(join(root, "no", "such", "place"), source, code);
    expect(await readdir(root)).toEqual([]);
  });
});
