import { execFileSync } from "node:child_process";
import { chown, link, mkdir, mkdtemp, rename, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OutputStore, createOutputStore } from "../../../../src/launch/service/output.ts";
import { readNote } from "../../../../src/launch/service/users-files.ts";

/** What a job puts in place of the files that the server reads. Accounts are numbers: they need not exist. */

const isRoot = process.getuid?.() === 0;
const [ALICE, BOB] = [54_321, 54_322];
const SECRET = "the server's own token";

let root: string;
let job: string;
let store: OutputStore;
const at = (name: string): string => join(job, name);
const files = (): { stdout: string; stderr: string } => ({ stdout: at("output.log"), stderr: at("error.log") });

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-hostile-"));
  job = join(root, "job");
  await mkdir(job);
  await writeFile(join(root, "secret"), SECRET, { mode: 0o600 });
  store = createOutputStore(join(root, "kept"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const whole = async (isOver: boolean): Promise<string> => {
  const parts: Uint8Array[] = [];
  const source = { files: files(), follow: false, signal: new AbortController().signal, isOver: () => isOver };
  for await (const part of store.read(1, "stdout", source)) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
};

const fifo = (path: string): void => void execFileSync("mkfifo", [path]);

/** Everything that the server ever reads from a job's directory. */
const everything = async (): Promise<string> => {
  const said = [await whole(false), await store.tail(1, "stdout", files(), 1000)];
  await store.collect(1, files());
  said.push(await whole(true), await store.tail(1, "stderr", files(), 1000));
  for (const name of ["exit-code", "native-id"]) said.push((await readNote(at(name))) ?? "");
  return said.join("");
};

const NAMES = ["output.log", "error.log", "exit-code", "native-id"];

describe("what a job puts in the place of its files", () => {
  it("is read where it is what it should be", async () => {
    for (const name of NAMES) await writeFile(at(name), `${name}\n`);
    expect(await everything()).toBe("output.log\noutput.log\noutput.log\nerror.log\nexit-codenative-id");
  });

  it("symbolic links lead nowhere, for logs, the end, and the record", async () => {
    for (const name of NAMES) await symlink(join(root, "secret"), at(name));
    expect(await everything()).toBe("");
  });

  it("a directory that is a symbolic link is not entered", async () => {
    await mkdir(join(root, "private"));
    for (const name of NAMES) await writeFile(join(root, "private", name), SECRET);
    await rm(job, { recursive: true });
    await symlink(join(root, "private"), job);
    expect(await everything()).toBe("");
  });

  it("a second name of another file is not read", async () => {
    for (const name of NAMES) await link(join(root, "secret"), at(name));
    expect(await everything()).toBe("");
  });

  it.skipIf(!isRoot)(
    `files of somebody else than the directory's owner are not read${isRoot ? "" : " (skipped: needs root to make some)"}`,
    async () => {
      await chown(job, ALICE, ALICE);
      for (const name of NAMES) {
        await writeFile(at(name), SECRET);
        await chown(at(name), BOB, BOB);
      }
      expect(await everything()).toBe("");
      // nor root's own: a server that runs as root would read anything
      for (const name of NAMES) await chown(at(name), 0, 0);
      expect(await everything()).toBe("");
      for (const name of NAMES) await chown(at(name), ALICE, ALICE);
      expect(await everything()).not.toBe("");
    },
  );

  it("pipes, devices and directories are left alone at once, whoever else is waited for", async () => {
    for (const name of NAMES) fifo(at(name));
    expect(await everything()).toBe("");
    for (const name of NAMES) {
      await rm(at(name));
      await symlink("/dev/zero", at(name));
    }
    expect(await everything()).toBe("");
    for (const name of NAMES) {
      await rm(at(name));
      await mkdir(at(name));
    }
    expect(await everything()).toBe("");
  });

  it("of a huge file no more is read than is needed", async () => {
    for (const name of ["exit-code", "native-id"]) {
      await writeFile(at(name), "7\n");
      await truncate(at(name), 2 ** 40);
    }
    const before = process.memoryUsage().rss;
    const notes = [await readNote(at("exit-code")), await readNote(at("native-id"))];
    for (const note of notes) expect(note!.length).toBeLessThanOrEqual(200);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });

  it("a log that is cut, replaced or taken away while it is read ends where it is known", async () => {
    await writeFile(at("output.log"), "x".repeat(1_000_000));
    const source = { files: files(), follow: false, signal: new AbortController().signal, isOver: () => false };
    const reading = store.read(1, "stdout", source);
    const first = await reading.next();
    expect((first.value as Uint8Array).length).toBeGreaterThan(0);
    await truncate(at("output.log"), 10);
    await rename(at("output.log"), at("elsewhere"));
    await symlink(join(root, "secret"), at("output.log"));
    let rest = "";
    for await (const part of reading) rest += Buffer.from(part).toString("utf8");
    expect(rest.replaceAll("x", "")).toBe("");
    expect((await stat(join(root, "secret"))).size).toBe(SECRET.length);
  });
});
