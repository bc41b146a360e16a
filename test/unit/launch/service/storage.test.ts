import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Storage, createStorage } from "../../../../src/launch/service/storage.ts";

let root: string;
let storage: Storage;
const asked: (readonly string[])[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-storage-"));
  asked.length = 0;
  storage = createStorage(async (argv) => {
    asked.push(argv);
    return { argv, code: 0, stdout: "", stderr: "", timedOut: false };
  }, "mine");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const name = (letter: string): string => letter.repeat(32);
const directory = (letter: string): string => join(root, name(letter));
const files = [
  { path: "job.sh", content: "#!/bin/sh\n", encoding: "utf8" as const, mode: 0o755 },
  { path: "files/deep/data", content: "AAEC", encoding: "base64" as const, mode: 0o600 },
];

describe("job directories", () => {
  it("hold what was planned, with its modes whatever the umask is, private to the job's user", async () => {
    await storage.make({ directory: directory("a"), directories: ["ranks"], files });
    expect((await stat(directory("a"))).mode & 0o7777).toBe(0o700);
    expect((await stat(join(directory("a"), "job.sh"))).mode & 0o777).toBe(0o755);
    expect(await readFile(join(directory("a"), "files/deep/data"))).toEqual(Buffer.from([0, 1, 2]));
    expect((await stat(join(directory("a"), "ranks"))).isDirectory()).toBe(true);
    expect(asked).toEqual([]);
    await storage.remove(directory("a"), false);
    expect(await readdir(root)).toEqual([]);
  });

  it("a second request for the same directory leaves the first one's alone", async () => {
    await storage.make({ directory: directory("a"), directories: [], files });
    await expect(storage.make({ directory: directory("a"), directories: [], files })).rejects.toMatchObject({
      code: "launch-failed",
    });
    expect(await readFile(join(directory("a"), "job.sh"), "utf8")).toBe("#!/bin/sh\n");
  });

  it("one that cannot be filled leaves nothing behind", async () => {
    const twice = [files[0]!, files[0]!];
    await expect(storage.make({ directory: directory("a"), directories: [], files: twice })).rejects.toMatchObject({
      code: "launch-failed",
    });
    expect(await readdir(root)).toEqual([]);
  });

  it("what a crashed server staged and never journaled is swept away, and nothing else", async () => {
    for (const letter of ["a", "b"]) await storage.make({ directory: directory(letter), directories: [], files });
    const other = createStorage(async (argv) => ({ argv, code: 0, stdout: "", stderr: "", timedOut: false }), "theirs");
    await other.make({ directory: directory("c"), directories: [], files });
    await writeFile(join(root, "notes.txt"), "of the administrator");
    await storage.sweep(root, (path) => path === directory("a"));
    const left = (await readdir(root)).filter((each) => !each.startsWith("."));
    expect(left.sort()).toEqual([name("a"), name("c"), "notes.txt"]);
  });

  it("only directories of jobs are ever removed", async () => {
    await writeFile(join(root, "precious"), "");
    await storage.remove(join(root, "precious"), true);
    await storage.remove(root, true);
    expect(await readdir(root)).toEqual(["precious"]);
    expect(asked).toEqual([]);
  });
});
