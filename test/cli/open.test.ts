import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Signing in to the page of a real server, as a person does it with `slipway open`. */

interface Opened {
  readonly url: string;
  readonly port: number | null;
  readonly ssh: string | null;
  readonly opened: boolean;
}

let slipway: SlipwayHome;
/** No screen, no ssh, no browser, whatever this machine has. */
const env = { SSH_CONNECTION: undefined, DISPLAY: undefined, WAYLAND_DISPLAY: undefined, BROWSER: undefined };

beforeAll(async () => {
  slipway = await createHome();
});
afterAll(() => slipway.cleanup());

const SSHD = "/usr/sbin/sshd";
const run = promisify(execFile);

const freePort = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** Ends a program that the test started. */
const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGTERM");
  await closed;
};

const open = (...args: string[]): Promise<Opened> => slipway.json<Opened>(["open", ...args], { env });
const codeOf = (url: string): string => new URL(url).hash.replace("#code=", "");

const signIn = (url: string): Promise<Response> =>
  fetch(new URL("api/v1/session", url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code: codeOf(url) }),
  });

describe("slipway open", () => {
  it("needs a server that runs, and says how to get one", async () => {
    const { status, stderr } = await slipway.run(["open"], { env });
    expect([status, stderr]).toEqual([3, expect.stringContaining("slipway up")]);
    await slipway.run(["up"]);
  });

  it("prints an address whose code signs in once", async () => {
    const opened = await open("--role", "submit");
    expect(opened).toMatchObject({
      ssh: null,
      opened: false,
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#code=/),
    });
    const answer = await signIn(opened.url);
    const { key, role } = (await answer.json()) as { key: string; role: string };
    expect([answer.status, role]).toEqual([200, "submit"]);
    const ask = (method: string, path: string): Promise<Response> =>
      fetch(new URL(path, opened.url), { method, headers: { authorization: `Bearer ${key}` } });
    expect((await ask("GET", "api/v1/status")).status).toBe(200);
    expect((await ask("POST", "api/v1/server/stop")).status).toBe(403);
    expect((await signIn(opened.url)).status).toBe(401);
    expect((await ask("DELETE", "api/v1/session")).status).toBe(200);
    expect((await ask("GET", "api/v1/status")).status).toBe(401);
    // the same port for the next one
    expect((await open()).port).toBe(opened.port);
  });

  it("a browser is given a file, so that `ps` shows no code", async () => {
    const browser = join(slipway.cwd, "browser");
    const seen = join(slipway.cwd, "seen");
    await writeFile(browser, `#!/bin/sh\nprintf '%s\\n' "$@" > ${seen}.new\nmv ${seen}.new ${seen}\n`);
    await chmod(browser, 0o755);
    const { status, stdout, stderr } = await slipway.run(["open"], { env: { ...env, BROWSER: browser } });
    expect([status, stdout]).toEqual([
      0,
      expect.stringMatching(/^the page opens in your browser: http:\/\/127\.0\.0\.1:\d+\/\n$/),
    ]);
    expect(stdout + stderr).not.toContain("code=");
    const words = await until("the browser has started", () => readFile(seen, "utf8").catch(() => undefined));
    expect(words).toMatch(/^file:\/\/\S+\.html\n$/);
    const file = new URL(words.trim());
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const [, url = ""] = /url=([^"]+)/.exec(await readFile(file, "utf8")) ?? [];
    expect((await signIn(url)).status).toBe(200);
  });

  it("over ssh it prints the line that brings the socket, and an address for the other end", async () => {
    const { socket } = (await readEndpoint(slipway.home))!;
    const ssh = { ...env, SSH_CONNECTION: "198.51.100.7 50000 192.0.2.4 22" };
    const { stdout } = await slipway.run(["open", "--port", "20017"], { env: ssh });
    const [line, url = ""] = stdout.split("\n");
    expect(line).toMatch(/^ssh -L 20017:\/\S+\/api\.sock \S+@\S+$/);
    expect(line).toContain(`20017:${socket} `);
    expect(url).toMatch(/^http:\/\/localhost:20017\/#code=[\w-]{43}$/);
  });

  it("a real ssh brings the socket to another place: the page there is signed in by the code alone", async (ctx) => {
    if (!existsSync(SSHD) || !existsSync("/usr/bin/ssh")) return ctx.skip("there is no sshd or ssh here");
    const at = join(slipway.root, "ssh");
    await mkdir(at);
    const port = await freePort();
    for (const name of ["host", "user"])
      await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(at, name)]);
    await copyFile(join(at, "user.pub"), join(at, "authorized"));
    const config = `Port ${port}\nListenAddress 127.0.0.1\nHostKey ${at}/host\nAuthorizedKeysFile ${at}/authorized\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n`;
    await writeFile(join(at, "config"), config);
    // where root's sshd separates privileges; a machine that boots has it
    if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
    const sshd = spawn(SSHD, ["-D", "-e", "-f", join(at, "config")], { stdio: "ignore" });
    const ssh = { ...env, SSH_CONNECTION: `127.0.0.1 50000 127.0.0.1 ${port}` };
    const words = ["open", "--port", String(await freePort())];
    const opened = await slipway.json<Opened>(words, { env: ssh });
    const [program, ...args] = opened.ssh!.split(" ");
    const options =
      "-N -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectionAttempts=20";
    // under the name that leads here
    const there = [...args.slice(0, -1), `${userInfo().username}@127.0.0.1`];
    const tunnel = spawn(program!, [...options.split(" "), "-i", join(at, "user"), ...there], { stdio: "ignore" });
    try {
      const { origin } = new URL(opened.url);
      const ask = (headers: Record<string, string>): Promise<number> =>
        fetch(`${origin}/api/v1/server`, { headers }).then(({ status }) => status);
      await until("the tunnel is open", () => ask({}).catch(() => undefined));
      expect(await ask({})).toBe(401);
      expect(await ask({ origin: "https://evil.example" })).toBe(401);
      // one minute may have passed on a busy machine: the next address has the same port
      const { url } = await slipway.json<Opened>(words, { env: ssh });
      const { key } = (await (await signIn(url)).json()) as { key: string };
      const authorization = `Bearer ${key}`;
      expect(await ask({ authorization })).toBe(200);
      // a page on this machine's own port, beside it
      const here = await open();
      const local = (await (await signIn(here.url)).json()) as { key: string };
      expect(await ask({ authorization: `Bearer ${local.key}` })).toBe(200);
      await slipway.run(["down", "--now"]);
      await slipway.run(["up"]);
      // the tunnel leads to the next server as it did to the last one
      expect(await until("the page is back", () => ask({ authorization }).catch(() => undefined))).toBe(200);
      expect(await ask({ authorization: `Bearer ${local.key}` })).toBe(401);
    } finally {
      await Promise.all([tunnel, sshd].map(ended));
    }
  });

  it("another user of this machine reaches the port, and nothing behind it", async (ctx) => {
    if (process.getuid?.() !== 0) return ctx.skip("only root can become another user");
    const { url, port } = await open();
    const script = `
      const ask = async (path, init) => (await fetch("http://127.0.0.1:${port}" + path, init)).status;
      const json = { method: "POST", headers: { "content-type": "application/json" } };
      const readable = await import("node:fs/promises").then(({ readdir }) => readdir(${JSON.stringify(slipway.home)})).catch(({ code }) => code);
      console.log(JSON.stringify([
        await ask("/api/v1/server"), await ask("/metrics"), await ask("/api/v1/session/codes", { ...json, body: "{}" }),
        await ask("/api/v1/session", { ...json, body: '{"code":"' + "x".repeat(43) + '"}' }), readable,
      ]));`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], {
      uid: 65_534,
      gid: 65_534,
      cwd: "/",
      env: { PATH: process.env["PATH"] },
    });
    expect(JSON.parse(stdout)).toEqual([401, 401, 401, 401, "EACCES"]);
    expect((await signIn(url)).status).toBe(200);
  });

  it("the name of a portal is refused with the line to add, and taken as soon as it is there", async () => {
    const { url } = await open("--print");
    const headers = { accept: "text/html" };
    const ask = (): Promise<string> =>
      run("curl", [
        "-s",
        "-w",
        "%{http_code}",
        "-H",
        "Host: portal.example.org",
        "-H",
        `Accept: ${headers.accept}`,
        new URL("/", url).href,
      ]).then(({ stdout }) => stdout);
    expect(await ask()).toMatch(/page: \{ hosts: \[portal\.example\.org\] \}\s+421$/);
    await mkdir(slipway.home, { recursive: true });
    await writeFile(join(slipway.home, "clusters.yaml"), "page: { hosts: [portal.example.org] }\n");
    await slipway.run(["clusters", "reload"]);
    await until("clusters.yaml is taken over", async () => ((await ask()).endsWith("421") ? undefined : true));
  });
});
