import { chmod, lstat, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findBrowser, writeRedirect } from "../../../src/cli/browser.ts";
import { tunnelOf, tunnelPort, tunnelUrl, urlBelow } from "../../../src/cli/page-address.ts";

describe("the line for ssh", () => {
  const facts = { socket: "/run/user/7/slipway-1/api.sock", port: 20_017, user: "me" };

  it("names the socket, and the machine as one's own ssh reached it", () => {
    const tunnel = tunnelOf({ ...facts, host: "login3", connection: "198.51.100.7 50000 192.0.2.4 22" });
    expect(tunnel.command).toBe("ssh -L 20017:/run/user/7/slipway-1/api.sock me@192.0.2.4");
    expect(tunnelUrl(tunnel, "abc")).toBe("http://localhost:20017/#code=abc");
    expect(tunnelOf({ ...facts, host: "login3.hpc.example", connection: "1.2.3.4 5 192.0.2.4 2222" }).command).toBe(
      "ssh -p 2222 -L 20017:/run/user/7/slipway-1/api.sock me@login3.hpc.example",
    );
    expect(tunnelOf({ ...facts, host: "login3", connection: undefined }).command).toMatch(/ me@login3$/);
    expect(tunnelOf({ ...facts, socket: "/tmp/a b; rm/x", host: "h", connection: undefined }).command).toContain(
      "'20017:/tmp/a b; rm/x'",
    );
  });

  it("has the same port each time", () => {
    expect(tunnelPort(facts.socket)).toBe(tunnelPort(facts.socket));
    for (const socket of ["a", "b", "c"]) {
      expect(tunnelPort(socket)).toBeGreaterThanOrEqual(20_000);
      expect(tunnelPort(socket)).toBeLessThan(30_000);
    }
  });

  it("an address below another keeps its path", () => {
    expect(urlBelow("https://hub.example/user/me/proxy/{port}/", 5000, "abc")).toBe(
      "https://hub.example/user/me/proxy/5000/#code=abc",
    );
    expect(urlBelow("https://site.example/slipway", 5000, "abc")).toBe("https://site.example/slipway/#code=abc");
  });
});

describe("a browser", () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "slipway-open-"));
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  it("is looked for only where there is a screen, unless one is named", async () => {
    await writeFile(join(home, "xdg-open"), "#!/bin/sh\n");
    await chmod(join(home, "xdg-open"), 0o755);
    const env = { PATH: home };
    const found = { program: join(home, "xdg-open"), args: [] };
    expect(await findBrowser(env, "linux")).toBeUndefined();
    expect(await findBrowser({ ...env, DISPLAY: ":0" }, "linux")).toEqual(found);
    expect(await findBrowser({ ...env, WAYLAND_DISPLAY: "wayland-0" }, "linux")).toEqual(found);
    expect(await findBrowser({ ...env, DISPLAY: ":0" }, "darwin")).toBeUndefined();
    expect(await findBrowser({ ...env, BROWSER: "xdg-open --new:other" }, "linux")).toEqual({
      ...found,
      args: ["--new"],
    });
    expect(await findBrowser({ ...env, DISPLAY: ":0", BROWSER: "nothing" }, "linux")).toBeUndefined();
  });

  it("gets a file that its owner alone can read; what lay there under such a name is removed, not followed", async () => {
    const precious = join(home, "precious");
    await writeFile(precious, "kept");
    await symlink(precious, join(home, "open-0123456789abcdef.html"));
    await writeFile(join(home, "open-me.html"), "somebody's own");
    const path = await writeRedirect(home, "http://127.0.0.1:5000/#code=abc");
    const about = await lstat(path);
    expect([about.isFile(), about.mode & 0o777]).toEqual([true, 0o600]);
    expect(await readFile(path, "utf8")).toContain('content="0;url=http://127.0.0.1:5000/#code=abc"');
    expect(await readFile(precious, "utf8")).toBe("kept");
    const next = await writeRedirect(home, "http://127.0.0.1:5000/#code=def");
    expect((await readdir(home)).toSorted()).toEqual(
      ["open-me.html", next.slice(home.length + 1), "precious"].toSorted(),
    );
  });
});
