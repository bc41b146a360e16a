import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

vi.setConfig({ testTimeout: 120_000 });

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));

describe("the start of a server", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slw-start-"));
    await cp(DIST, join(root, "dist"), { recursive: true, filter: (path) => !/\.(cache|map)$|types/.test(path) });
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const caches = async (): Promise<string[]> =>
    (await readdir(join(root, "dist"))).filter((name) => /^server-.*\.cache$/.test(name));

  /** Starts one, and ends it when it is ready. */
  const serve = async (): Promise<unknown> => {
    const server = spawn(process.execPath, [join(root, "dist", "server.js"), "serve", "--home", join(root, "home")], {
      stdio: ["ignore", "ignore", "inherit", "pipe"],
    });
    const ended = once(server, "exit");
    const [line] = (await once((server.stdio[3] as Readable).setEncoding("utf8"), "data")) as [string];
    server.kill("SIGTERM");
    expect((await ended)[0]).toBe(0);
    return (JSON.parse(line) as { ready?: unknown }).ready;
  };

  it("leaves the code that V8 compiled to the next, which starts with it; other uses of its program leave none", async () => {
    spawnSync(process.execPath, [join(root, "dist", "server.js"), "nonsense"]);
    expect(await caches()).toEqual([]);
    expect(await serve()).toBe(true);
    const [name, ...others] = await caches();
    expect(others).toEqual([]);
    const { ino, size } = await stat(join(root, "dist", name!));
    expect(size).toBeGreaterThan(100_000);
    expect(await serve()).toBe(true);
    // it was taken as it was
    expect((await stat(join(root, "dist", name!))).ino).toBe(ino);
  });
});
