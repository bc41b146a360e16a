import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findCommand, findProgram } from "../../src/find-program.ts";

/** Directories that may not be entered: test/unit/agent/spawner.test.ts, which gives up root's powers for it. */

let root: string;
let path: string;
const at = (name: string): string => join(root, name);

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-find-"));
  await mkdir(at("a/tool"), { recursive: true });
  await mkdir(at("b"));
  await mkdir(at("c"));
  await writeFile(at("a/data"), "", { mode: 0o644 });
  for (const name of ["b/tool", "c/tool", "c/data"]) await writeFile(at(name), "", { mode: 0o755 });
  path = ["/no/such", at("a/data"), at("a"), at("b"), at("c")].join(":");
});
afterAll(() => rm(root, { recursive: true, force: true }));

it("a program is the first file on the PATH that may be executed, never a directory", async () => {
  expect(await findProgram("tool", undefined, path)).toBe(at("b/tool"));
  expect(await findProgram("data", undefined, path)).toBe(at("c/data"));
  expect(await findProgram("absent", undefined, path)).toBeUndefined();
  expect(await findProgram("tool", at("c"), path)).toBe(at("c/tool"));
  expect(await findProgram("tool", at("a"), path)).toBeUndefined();
});

it("a server's own directory is no place for programs", async () => {
  expect(await findProgram("package.json", undefined, ":.")).toBeUndefined();
});

it("a command is what execve would get, or says why there is none", () => {
  expect(findCommand("tool", path, "/")).toEqual({ file: at("b/tool") });
  expect(findCommand("tool", "a:c", root)).toEqual({ file: at("c/tool") });
  expect(findCommand("tool", "", at("c"))).toEqual({ file: at("c/tool") });
  expect(findCommand("c/tool", "", root)).toEqual({ file: at("c/tool") });
  expect(findCommand("data", at("a"), "/")).toEqual({ code: "EACCES" });
  expect(findCommand("data", path, "/")).toEqual({ file: at("c/data") });
  for (const name of ["absent", "", "b/absent", "a/data/tool"])
    expect(findCommand(name, path, root), name).toEqual({ code: "ENOENT" });
  expect(findCommand("tool", at("a"), "/")).toEqual({ code: "ENOENT" });
  expect(findCommand("a/tool", "", root)).toEqual({ code: "EACCES" });
});
