import { once } from "node:events";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { type Socket, connect } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { request } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { packPage } from "../../../scripts/pack-page.mjs";
import { CLOSE_AFTER_MS } from "../../../src/doors/page-door.ts";
import { type OpenedDoors, openTestDoors } from "./opened-doors.ts";

/** The page's files as browsers get them, and the door that is opened for browsers. */

const SCRIPT = "export const x = 1;\n".repeat(200);

let at: OpenedDoors;

beforeAll(async () => {
  at = await openTestDoors(50);
});
beforeEach(() => at.pass(60_000));
afterAll(() => at.close());

/** A request with a path that no client would send, as bytes. */
const raw = async (text: string): Promise<string> => {
  const socket = connect({ host: "127.0.0.1", port: await at.pagePort() });
  socket.end(text);
  let all = "";
  for await (const piece of socket) all += String(piece);
  return all;
};

describe("the page's files", () => {
  it("until they are built, the answer says so", async () => {
    const answer = await at.ask({ path: "/" });
    expect([answer.status, answer.code]).toEqual([404, "no-page"]);
    expect(JSON.parse(answer.text)).toMatchObject({ hint: expect.stringContaining("npm run build") });
  });

  it("come with everything that a browser needs to be told, packed and at every door", async () => {
    await mkdir(join(at.pageDirectory, "assets"), { recursive: true });
    await writeFile(join(at.pageDirectory, "index.html"), "<!doctype html><title>Slipway</title>");
    await writeFile(join(at.pageDirectory, "assets", "index-BxY12abc.js"), SCRIPT);
    await writeFile(join(at.pageDirectory, "icon.svg"), "<svg/>");
    await writeFile(join(at.pageDirectory, "secret.key"), "of no type that a page has");
    await symlink("/etc/passwd", join(at.pageDirectory, "link.txt"));
    packPage(at.pageDirectory);
    for (const door of ["page", "socket", "port"] as const) {
      const index = await at.ask({ door, path: "/", headers: { host: "localhost:8017" } });
      expect([index.status, index.text], door).toEqual([200, "<!doctype html><title>Slipway</title>"]);
      expect(index.headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-cache",
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
    }
    const script = await at.ask({ path: "/page/assets/index-BxY12abc.js" });
    expect(script.text).toBe(SCRIPT);
    expect(script.headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      vary: "accept-encoding",
    });
    expect((await at.ask({ path: "/page/icon.svg" })).headers["cache-control"]).toBe("no-cache");
  });

  it("are sent packed to who takes that, and not again to who has them", async () => {
    const path = "/page/assets/index-BxY12abc.js";
    const [answer] = (await once(
      request({
        host: "127.0.0.1",
        port: await at.pagePort(),
        path,
        headers: { "accept-encoding": "br, gzip;q=0.8" },
      }).end(),
      "response",
    )) as [import("node:http").IncomingMessage];
    const pieces: Buffer[] = [];
    for await (const piece of answer) pieces.push(piece as Buffer);
    const packed = Buffer.concat(pieces);
    expect(answer.headers["content-encoding"]).toBe("gzip");
    expect(Number(answer.headers["content-length"])).toBe(packed.length);
    expect(packed.length).toBeLessThan(SCRIPT.length / 10);
    expect(gunzipSync(packed).toString()).toBe(SCRIPT);
    for (const none of ["gzip;q=0", "identity", "gzipped"])
      expect(
        (await at.ask({ path, headers: { "accept-encoding": none } })).headers["content-encoding"],
      ).toBeUndefined();
    const etag = answer.headers["etag"]!;
    const again = await at.ask({ path, headers: { "if-none-match": `"x", ${etag}` } });
    expect([again.status, again.text, again.headers["etag"]]).toEqual([304, "", etag]);
    expect((await at.ask({ path, headers: { "if-none-match": '"x"' } })).status).toBe(200);
  });

  it("HEAD is GET without the body; other methods are refused", async () => {
    const head = await at.ask({ method: "HEAD", path: "/" });
    expect([head.status, head.text, head.headers["content-length"]]).toEqual([200, "", "37"]);
    const post = await at.ask({ method: "POST", path: "/", body: {} });
    expect([post.status, post.headers["allow"]]).toEqual([405, "GET, HEAD"]);
    expect((await at.ask({ method: "HEAD", path: "/page/nothing.js" })).status).toBe(404);
  });

  it("no path leads to anything else", async () => {
    for (const path of [
      "/page/../../etc/passwd",
      "/page/../api.sock",
      "/page/%2e%2e/%2e%2e/etc/passwd",
      "/page/..%2f..%2fetc%2fpasswd",
      "/page//etc/passwd",
      "/page/\\..\\..\\etc\\passwd",
      "/page/link.txt",
      "/page/secret.key",
      "/page/index-BxY12abc.js.gz",
      "/page/assets",
      "/page/assets/",
      "/page/__proto__",
      "/page/",
      "/page/icon.svg%00.js",
    ]) {
      const answer = await raw(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
      expect(answer, path).toMatch(/^HTTP\/1.1 404 /);
      expect(answer).not.toContain("root:");
    }
    for (const line of ["GET http://evil.example/ HTTP/1.1", "GET /../page/../../x HTTP/1.1", "GET * HTTP/1.1"])
      expect(await raw(`${line}\r\nhost: localhost\r\nconnection: close\r\n\r\n`), line).toMatch(/^HTTP\/1.1 4\d\d /);
  });

  it("too many or too large files are no page", async () => {
    const large = await openTestDoors();
    await mkdir(large.pageDirectory);
    await writeFile(join(large.pageDirectory, "index.html"), "x");
    await writeFile(join(large.pageDirectory, "large.js"), Buffer.alloc(9 * 1024 * 1024));
    expect((await large.ask({ path: "/" })).code).toBe("no-page");
    // it is looked at again until it is one
    await rm(join(large.pageDirectory, "large.js"));
    expect((await large.ask({ path: "/" })).status).toBe(200);
    await large.close();
  });
});

describe("the door for browsers", () => {
  it("is on 127.0.0.1 alone, the same for everybody who asks, and closes after 12 hours without a session", async () => {
    const path = "/api/v1/session/codes";
    const open = async (body: object) =>
      JSON.parse((await at.ask({ door: "socket", method: "POST", path, headers: { host: "slipway" }, body })).text) as {
        port: number;
      };
    expect((await open({ listen: false })).port).toBeNull();
    const { port } = await open({ listen: true });
    expect((await open({ listen: true, port: port === 5000 ? 5001 : 5000 })).port).toBe(port);
    const key = await at.signIn();
    at.pass(CLOSE_AFTER_MS - 1);
    at.doors.page.look();
    expect(at.doors.page.port).toBe(port);
    await at.ask({ path: "/api/v1/server", headers: { authorization: `Bearer ${key}` } });
    at.pass(CLOSE_AFTER_MS - 1);
    at.doors.page.look();
    expect(at.doors.page.port).toBe(port);
    at.pass(1);
    at.doors.page.look();
    expect(at.doors.page.port).toBeUndefined();
    const gone = connect({ host: "127.0.0.1", port });
    await expect(once(gone, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    expect(await at.pagePort()).toBeGreaterThan(0);
  });

  it("a port that is taken is named", async () => {
    const other = await openTestDoors();
    const body = { listen: true, port: await at.pagePort() };
    const headers = { host: "slipway" };
    const answer = await other.ask({ door: "socket", method: "POST", path: "/api/v1/session/codes", headers, body });
    expect([answer.status, answer.code]).toEqual([409, "port-taken"]);
    expect(await other.pagePort()).toBeGreaterThan(0);
    await other.close();
  });

  it("connections beyond a number push out the oldest stranger, and nobody who is signed in", async () => {
    const port = await at.pagePort();
    const key = await at.signIn("read");
    const quiet = async (): Promise<Socket> => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.on("error", () => undefined);
      await once(socket, "connect");
      return socket;
    };
    const known = await quiet();
    const ask = async (): Promise<string> => {
      known.write(`GET /api/v1/server HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n\r\n`);
      return String((await once(known, "data"))[0]);
    };
    expect(await ask()).toMatch(/^HTTP\/1.1 200 /);
    const first = await quiet();
    const gone = once(first, "close");
    // the others' closing is awaited below
    const others = await Promise.all(Array.from({ length: 200 }, quiet));
    await gone;
    expect(await ask()).toMatch(/^HTTP\/1.1 200 /);
    await Promise.all(
      [known, ...others].map(async (socket) => {
        if (socket.closed) return;
        const closed = once(socket, "close");
        socket.destroy();
        await closed;
      }),
    );
  });
});
