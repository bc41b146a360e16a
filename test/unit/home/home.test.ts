import { X509Certificate } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TLSSocket, connect, createServer as createTlsServer } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readEndpoint } from "../../../src/protocol/endpoint.ts";
import { pinOf } from "../../../src/protocol/pin.ts";
import {
  loadKeys,
  prepareHome,
  removeEndpoint,
  removeRuntimeDirectory,
  runtimeDirectory,
  socketPath,
  writeEndpoint,
} from "../../../src/home/index.ts";
import { refusalOf } from "../../refusal.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "slipway-home-")));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe("prepareHome", () => {
  it("makes a private home with all its directories, and returns real paths", async () => {
    const paths = await prepareHome(join(root, "a", "home"));
    expect(paths.root).toBe(join(root, "a", "home"));
    for (const path of Object.values(paths)) expect(await modeOf(path)).toBe(0o700);
    await symlink(paths.root, join(root, "link"));
    expect(await prepareHome(join(root, "link"))).toEqual(paths);
    expect((await readdir(paths.root)).sort()).toEqual([
      "agents",
      "epochs",
      "jobs",
      "journal",
      "keys",
      "logs",
      "output",
      "spool",
    ]);
  });

  it("closes a home that others may enter, but never one that holds other things", async () => {
    const home = join(root, "home");
    await mkdir(home);
    await chmod(home, 0o755);
    await writeFile(join(home, "clusters.yaml"), "");
    await prepareHome(home);
    expect(await modeOf(home)).toBe(0o700);
    const shared = join(root, "shared");
    await mkdir(shared);
    await chmod(shared, 0o777);
    await writeFile(join(shared, "thesis.tex"), "");
    const error = await refusalOf(prepareHome(shared));
    expect(error.code).toBe("home-unusable");
    expect(error.message).toContain("777");
    expect(await modeOf(shared)).toBe(0o777);
    expect(await readdir(shared)).toEqual(["thesis.tex"]);
  });

  it("says clearly why a home cannot be used", async () => {
    await writeFile(join(root, "file"), "");
    expect((await refusalOf(prepareHome(join(root, "file")))).message).toContain("not a directory");
    expect((await refusalOf(prepareHome(join(root, "file", "home")))).message).toContain("not a directory");
    expect((await refusalOf(prepareHome("/proc/slipway"))).code).toBe("home-unusable");
    expect((await refusalOf(prepareHome(join(root, "x".repeat(300))))).message).toContain("too long");
    expect((await refusalOf(prepareHome(join(root, "a\0b")))).code).toBe("home-unusable");
  });
});

describe("keys", () => {
  it("are made once, 0600, and kept; two starts at once agree", async () => {
    const [one, two] = await Promise.all([loadKeys(root), loadKeys(root)]);
    expect(two).toEqual(one);
    expect(await loadKeys(root)).toEqual(one);
    expect(one.warnings).toEqual([]);
    expect((await readdir(join(root, "keys"))).sort()).toEqual([
      "agent.token",
      "client.token",
      "server.crt",
      "server.key",
    ]);
    for (const name of await readdir(join(root, "keys"))) expect(await modeOf(join(root, "keys", name))).toBe(0o600);
    expect(Buffer.from(one.clientToken, "base64url")).toHaveLength(32);
    expect(one.agentToken).not.toBe(one.clientToken);
  });

  it("rule 16: the certificate is dated back and lasts; TLS works with the key pinned, whatever the host's name", async () => {
    const keys = await loadKeys(root);
    const certificate = new X509Certificate(keys.certPem);
    const year = 365 * 24 * 3600 * 1000;
    expect(Date.parse(certificate.validFrom)).toBeLessThan(Date.now() - 9.9 * year);
    expect(Date.parse(certificate.validTo)).toBeGreaterThan(Date.now() + 29.9 * year);
    const server = createTlsServer({ key: keys.keyPem, cert: keys.certPem }, (socket) => void socket.end("hello"));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const shown = await new Promise<string | undefined>((resolve, reject) => {
      const socket: TLSSocket = connect(
        { host: "127.0.0.1", port, ca: keys.certPem, checkServerIdentity: () => undefined },
        () => {
          resolve(socket.authorized ? pinOf(socket) : undefined);
          socket.destroy();
        },
      );
      socket.once("error", reject);
    });
    expect(shown).toBe(keys.pin);
    await new Promise((resolve) => void server.close(resolve));
  });

  it("a key that others may read is closed, with a warning; a stray certificate is made anew; garbage is refused", async () => {
    const before = await loadKeys(root);
    await chmod(join(root, "keys", "server.key"), 0o644);
    const after = await loadKeys(root);
    expect(after.warnings.join()).toMatch(/server\.key could be read by others \(mode 644\)/);
    expect(await modeOf(join(root, "keys", "server.key"))).toBe(0o600);
    await rm(join(root, "keys", "server.key"));
    const renewed = await loadKeys(root);
    expect(renewed.pin).not.toBe(before.pin);
    expect(renewed.warnings.join()).toContain("server.crt");
    await writeFile(join(root, "keys", "client.token"), "short\n");
    expect((await refusalOf(loadKeys(root))).message).toContain("client.token");
    await writeFile(join(root, "keys", "server.key"), "");
    expect((await refusalOf(loadKeys(root))).message).toContain("server.key");
  });
});

describe("endpoint file", () => {
  it("is written 0600, read back, and removed only by its own epoch", async () => {
    const endpoint = {
      pid: 1,
      host: "h",
      addresses: ["10.0.0.1"],
      port: 4,
      socket: "/s",
      keyPin: "p",
      epoch: 2,
      started: "now",
      version: "0",
    };
    expect(await readEndpoint(root)).toBeUndefined();
    await writeEndpoint(root, endpoint);
    expect(await readEndpoint(root)).toEqual(endpoint);
    expect(await modeOf(join(root, "server.json"))).toBe(0o600);
    await removeEndpoint(root, 1);
    expect(await readEndpoint(root)).toEqual(endpoint);
    await removeEndpoint(root, 2);
    expect(await readdir(root)).toEqual([]);
  });
});

describe("runtime directory", () => {
  it("rule 14: lies in XDG_RUNTIME_DIR where that is ours and short, else in /tmp; the same at each start", async () => {
    const xdg = join(root, "run");
    await mkdir(xdg, { mode: 0o700 });
    const tmp = join(root, "tmp");
    await mkdir(tmp);
    const inXdg = await runtimeDirectory("/home/x", { env: { XDG_RUNTIME_DIR: xdg }, tmp });
    expect(inXdg.startsWith(`${xdg}/slipway-`)).toBe(true);
    expect(await modeOf(inXdg)).toBe(0o700);
    expect(await runtimeDirectory("/home/x", { env: { XDG_RUNTIME_DIR: xdg }, tmp })).toBe(inXdg);
    const long = join(root, "l".repeat(60), "m".repeat(40));
    await mkdir(long, { recursive: true });
    for (const other of [undefined, "", "relative", join(root, "none"), long]) {
      const dir = await runtimeDirectory("/home/x", { env: { XDG_RUNTIME_DIR: other }, tmp });
      expect(dir.startsWith(`${tmp}/slipway-${process.getuid!()}-`)).toBe(true);
    }
    expect(await runtimeDirectory("/home/y", { env: {}, tmp })).not.toBe(
      await runtimeDirectory("/home/x", { env: {}, tmp }),
    );
  });

  it("rule 14: a symbolic link or an open directory of that name is never used", async () => {
    const first = await runtimeDirectory("/home/x", { env: {}, tmp: root });
    await rm(first, { recursive: true });
    await mkdir(join(root, "trap"), { mode: 0o700 });
    await symlink(join(root, "trap"), first);
    const second = await runtimeDirectory("/home/x", { env: {}, tmp: root });
    expect(second).not.toBe(first);
    await rm(first);
    await mkdir(first);
    await chmod(first, 0o777);
    const third = await runtimeDirectory("/home/x", { env: {}, tmp: root });
    expect(third).not.toBe(first);
    expect(await modeOf(third)).toBe(0o700);
    const error = await refusalOf(runtimeDirectory("/home/x", { env: {}, tmp: join(root, "none") }));
    expect(error.code).toBe("home-unusable");
  });

  it("rule 14: a path over 107 bytes is refused, also when its characters are fewer", async () => {
    expect(socketPath("/tmp/d", "s".repeat(100))).toHaveLength(107);
    await expect(async () => socketPath("/tmp/d", "s".repeat(101))).rejects.toThrow(/108 bytes/);
    await expect(async () => socketPath("/tmp/d", "é".repeat(60))).rejects.toThrow(/127 bytes/);
  });

  it("is removed with its sockets, unless something else is in it", async () => {
    const dir = await runtimeDirectory("/home/x", { env: {}, tmp: root });
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(socketPath(dir, "a.sock"), resolve));
    await writeFile(join(dir, "note"), "");
    await removeRuntimeDirectory(dir);
    expect(await readdir(dir)).toEqual(["note"]);
    await rm(join(dir, "note"));
    await removeRuntimeDirectory(dir);
    await removeRuntimeDirectory(dir);
    expect(await readdir(root)).toEqual([]);
    await new Promise((resolve) => void server.close(resolve));
  });
});
