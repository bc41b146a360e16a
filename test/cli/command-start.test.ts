import { type SpawnSyncReturns, execFileSync, spawnSync } from "node:child_process";
import { chown, cp, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

vi.setConfig({ testTimeout: 120_000 });

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NOBODY = 65_534;

describe("the start of a command", () => {
  let root: string;
  let product: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slw-start-"));
    product = join(root, "slipway");
    for (const part of ["bin", "dist", "package.json"])
      await cp(join(ROOT, part), join(product, part), {
        recursive: true,
        filter: (path) => !/\.(cache|map)$|types/.test(path),
      });
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const slipway = (words: readonly string[], node: readonly string[] = []): SpawnSyncReturns<string> =>
    spawnSync(process.execPath, [...node, join(product, "bin", "slipway"), "--home", join(root, "home"), ...words], {
      encoding: "utf8",
      cwd: root,
    });
  const checks = (...words: readonly string[]): void =>
    expect(slipway(["validate", ...words, "--", "true"]).status).toBe(0);
  const caches = async (): Promise<string[]> =>
    (await readdir(join(product, "dist")))
      .filter((name) => name.endsWith(".cache"))
      .map((name) => name.replace(/-\d.*/, ""));
  const cacheOf = async (program: string): Promise<string> => {
    const names = await readdir(join(product, "dist"));
    return join(
      product,
      "dist",
      names.find((name) => new RegExp(`^${program}-\\d.*\\.cache$`).test(name))!,
    );
  };

  it("leaves what was compiled to the next, which adds to it only what is used otherwise", async () => {
    expect(slipway(["validate", "no-such-file.yaml"]).status).not.toBe(0);
    expect(slipway(["validate", "--help"]).status).toBe(0);
    expect(await caches()).toEqual([]);
    checks();
    expect(await caches()).toEqual(["cli"]);
    const path = await cacheOf("cli");
    const { ino, size } = await stat(path);
    expect(size).toBeGreaterThan(100_000);
    checks();
    expect((await stat(path)).ino).toBe(ino);
    checks("--json");
    expect((await stat(path)).ino).not.toBe(ino);
    const later = await stat(path);
    for (const words of [[], ["--json"]]) checks(...words);
    expect((await stat(path)).ino).toBe(later.ino);
    expect((await readdir(join(product, "dist"))).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("says nothing there of what was typed", async () => {
    expect(slipway(["validate", "--name", "secretive", "--", "echo", "--confidential"]).status).toBe(0);
    const bytes = await readFile(await cacheOf("cli"), "latin1");
    expect(bytes).toMatch(/validate\+name$/);
    expect(bytes).not.toMatch(/secretive|confidential/);
  });

  it("needs no more than its server where a verb only asks, and finds the same with all options before it", async () => {
    expect(slipway(["up"]).status).toBe(0);
    try {
      expect(slipway(["list"]).stdout).toBe("no runs yet\n");
      expect(await caches()).toContain("cli-light");
      // its program alone is there
      await rm(join(product, "dist", "cli.cjs"));
      for (const words of [["list"], ["--json", "list"], ["-q", "--no-color", "list", "--json"]])
        expect(slipway(words).stdout.trim()).toBe(words.includes("--json") ? "[]" : "no runs yet");
    } finally {
      await cp(join(ROOT, "dist", "cli.cjs"), join(product, "dist", "cli.cjs"));
      expect(slipway(["down", "--now"]).status).toBe(0);
    }
  });

  it("waits for nothing that lies in the place of compiled code, and believes no damage", async () => {
    checks();
    const path = await cacheOf("cli");
    const bytes = await readFile(path);
    bytes.fill(0, bytes.length >> 1);
    await writeFile(path, bytes);
    checks();
    await rm(path);
    execFileSync("mkfifo", [path]);
    checks();
  });

  it("is the same where only somebody else may leave compiled code", async (ctx) => {
    if (process.getuid?.() !== 0) ctx.skip("only root can give files away");
    await chown(join(product, "dist", "cli.cjs"), NOBODY, NOBODY);
    checks();
    expect(await caches()).toEqual([]);
  });

  it("reads no authorities, which tasks have in their environment all the same", () => {
    const command = 'echo "$NODE_EXTRA_CA_CERTS, $SLIPWAY_NODE_EXTRA_CA_CERTS"';
    const words = ["--home", join(root, "home"), "run", "--", "sh", "-c", command];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: "/nowhere/my authorities.pem" };
    const { stdout, stderr } = spawnSync(join(product, "bin", "slipway"), words, { encoding: "utf8", cwd: root, env });
    expect(stdout).toBe("/nowhere/my authorities.pem, \n");
    expect(stderr).toMatch(/run 1/);
    // Node.js complains of authorities that it cannot read
    expect(stderr).not.toMatch(/Ignoring extra certs/);
  });

  it("starts where sh takes a variable that is not set for a mistake, as bash does with an exported SHELLOPTS", () => {
    const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
    const words = ["-u", join(product, "bin", "slipway"), "--version"];
    expect(spawnSync("/bin/sh", words, { encoding: "utf8", cwd: root, env })).toMatchObject({ status: 0, stderr: "" });
  });

  it("says that Node.js is missing, and follows links to where it is installed", async () => {
    const link = join(root, "by a link");
    await symlink(join(product, "bin", "slipway"), link);
    const start = (PATH: string): SpawnSyncReturns<string> =>
      spawnSync(link, ["validate", "--", "echo", "$HOME `x` 'a b'"], { encoding: "utf8", cwd: root, env: { PATH } });
    expect(start(join(root, "empty"))).toMatchObject({ status: 127, stdout: "" });
    expect(start(join(root, "empty")).stderr).toMatch(/^error: .*Node\.js 20\.19.*no node on PATH\n$/);
    const { status, stdout } = start(dirname(process.execPath));
    expect(stdout).toContain("'$HOME `x`");
    expect(status).toBe(0);
  });

  it("follows maps to the sources where Node is asked to", async () => {
    await cp(join(ROOT, "dist", "cli.cjs.map"), join(product, "dist", "cli.cjs.map"));
    const words = ["validate", "no-such-file.yaml", "--debug"];
    expect(slipway(words).stderr).toMatch(/at loadRunFile \(.*dist\/cli\.cjs:\d+:\d+\)/);
    expect(slipway(words, ["--enable-source-maps"]).stderr).toMatch(/at .*read-run-file\.ts:\d+:\d+\)/);
  });
});
