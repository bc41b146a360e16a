import { readFile, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { callerWith } from "../../../src/api/caller.ts";
import { COOKIE } from "../../../src/doors/entrance.ts";
import { OWNER, type OpenedDoors, openTestDoors } from "./opened-doors.ts";

/** Who comes in at the real doors, and as whom: browsers, other people's pages, programs. */

const HOUR = 3_600_000;
const SERVER = "/api/v1/server";
const SESSION = "/api/v1/session";

let at: OpenedDoors;

beforeAll(async () => {
  at = await openTestDoors();
});
beforeEach(() => {
  at.settings = { hosts: [] };
  // nobody has to wait for what another test did
  at.pass(HOUR);
});
afterAll(() => at.close());

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

describe("the unix socket", () => {
  it("is the owner's for a program that says so, and nobody's with a mark of a browser", async () => {
    const ask = (headers: Record<string, string>) => at.ask({ door: "socket", path: SERVER, headers });
    expect((await ask({ host: "slipway" })).status).toBe(200);
    for (const [code, headers] of [
      ["no-session", { host: "localhost:8017" }],
      ["no-session", { host: "localhost" }],
      ["no-session", { host: "localhost:8017", origin: "http://localhost:8017" }],
      ["host-refused", { host: "slipway:80" }],
      ["host-refused", { host: "slipway", origin: "http://slipway" }],
      ["host-refused", { host: "slipway", origin: "null" }],
      ["host-refused", { host: "slipway", "sec-fetch-site": "cross-site" }],
      ["host-refused", { host: "slipway", "sec-fetch-mode": "navigate" }],
    ] as const)
      expect((await ask(headers)).code, JSON.stringify(headers)).toBe(code);
    expect((await ask({ host: "localhost:8017", ...bearer(OWNER) })).status).toBe(200);
  });

  it("a forwarded one: a page elsewhere cannot stop the server with a form, nor read anything", async () => {
    at.reached.length = 0;
    const forged = await at.ask({
      door: "socket",
      method: "POST",
      path: "/api/v1/server/stop",
      headers: { host: "localhost:8017", origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    });
    expect(forged.status).toBe(401);
    expect(forged.headers["access-control-allow-origin"]).toBeUndefined();
    const preflight = await at.ask({
      door: "socket",
      method: "OPTIONS",
      path: "/api/v1/server/stop",
      headers: { host: "localhost:8017", origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect([preflight.status, preflight.headers["access-control-allow-origin"]]).toEqual([401, undefined]);
    expect(at.reached).toEqual([]);
  });
});

describe("names of this server", () => {
  it("a name that leads here and is not ours is refused at every door, with the line to add", async () => {
    for (const door of ["socket", "page", "port"] as const)
      for (const [method, path, body] of [
        ["GET", "/"],
        ["GET", "/page/x.js"],
        ["POST", SESSION, { code: "x" }],
      ] as const) {
        const headers = { host: "evil.example:8017" };
        const answer = await at.ask({ door, method, path, headers, ...(body === undefined ? {} : { body }) });
        expect([answer.status, answer.code], `${door} ${path}`).toEqual([421, "host-refused"]);
        expect(JSON.parse(answer.text)).toMatchObject({
          hint: expect.stringContaining("page: { hosts: [evil.example] }"),
        });
      }
    // a person reads it as text
    const read = await at.ask({ path: "/", headers: { host: "evil.example", accept: "text/html,*/*" } });
    expect(read.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(read.text).toContain("page: { hosts: [evil.example] }");
  });

  it("nor does it help to know a code", async () => {
    const code = await at.code();
    const headers = { host: "evil.example", origin: "http://evil.example" };
    expect((await at.ask({ method: "POST", path: SESSION, headers, body: { code } })).status).toBe(421);
    expect((await at.ask({ method: "POST", path: SESSION, body: { code } })).status).toBe(200);
  });

  it("loopback names, own addresses and page.hosts are ours; what only looks like one is not", async () => {
    const status = async (host: string): Promise<number> => (await at.ask({ path: "/", headers: { host } })).status;
    for (const host of ["localhost", "LOCALHOST:1", "127.0.0.1:8017", "127.9.9.9", "[::1]:80", hostname()])
      expect(await status(host), host).toBe(404);
    for (const host of ["localhost.evil.example", "127.0.0.1.evil.example", "evil@localhost", "[::2]", "203.0.113.9"])
      expect(await status(host), host).not.toBe(404);
    at.settings = { hosts: ["portal.example.org"] };
    expect(await status("portal.example.org")).toBe(404);
    expect(await status("Portal.Example.org:8443")).toBe(404);
    expect(await status("x.portal.example.org")).toBe(421);
    at.settings = { hosts: [], origin: "https://site.example:8443" };
    expect(await status("site.example:8443")).toBe(404);
  });

  it("a program at the port may call it whatever it likes, and whether it lives is anybody's question", async () => {
    const headers = { host: "cname.example", ...bearer(OWNER) };
    expect((await at.ask({ door: "port", path: SERVER, headers })).status).toBe(200);
    expect((await at.ask({ door: "port", path: SERVER, headers: { host: "cname.example" } })).code).toBe(
      "unauthorized",
    );
    expect((await at.ask({ door: "port", path: "/healthz", headers: { host: "cname.example" } })).status).toBe(200);
    expect((await at.ask({ path: "/healthz", headers: { host: "cname.example" } })).status).toBe(200);
  });

  it("X-Forwarded-* changes nothing", async () => {
    at.settings = { hosts: [], origin: "https://site.example" };
    const forwarded = {
      "x-forwarded-host": "site.example",
      "x-forwarded-proto": "https",
      forwarded: "host=site.example",
    };
    expect((await at.ask({ path: "/", headers: { host: "evil.example", ...forwarded } })).status).toBe(421);
    const body = { code: await at.code() };
    const signed = await at.ask({ method: "POST", path: SESSION, headers: forwarded, body });
    expect([signed.status, signed.headers["set-cookie"]]).toEqual([200, undefined]);
  });
});

describe("codes", () => {
  it("work once, for 60 seconds, and only as they were given out", async () => {
    const redeem = (code: string) => at.ask({ method: "POST", path: SESSION, body: { code } });
    const code = await at.code();
    expect(code).toMatch(/^[\w-]{43}$/);
    expect((await redeem(code.slice(0, -1))).code).toBe("sign-in-refused");
    const first = await redeem(code);
    expect(JSON.parse(first.text)).toMatchObject({
      role: "admin",
      name: null,
      key: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(first.headers["cache-control"]).toBe("no-store");
    expect((await redeem(code)).code).toBe("sign-in-refused");

    const late = await at.code();
    at.pass(60_000);
    expect((await redeem(late)).code).toBe("sign-in-refused");
    const inTime = await at.code();
    at.pass(59_999);
    expect((await redeem(inTime)).status).toBe(200);
  });

  it("of many that are not used, the last 32 count", async () => {
    const codes = await Promise.all(Array.from({ length: 40 }, () => at.code("read")));
    const outcomes = await Promise.all(
      codes.map(async (code) => (await at.ask({ method: "POST", path: SESSION, body: { code } })).status),
    );
    expect(outcomes.filter((status) => status === 200)).toHaveLength(32);
  });

  it("are given to the owner alone", async () => {
    const path = "/api/v1/session/codes";
    expect((await at.ask({ method: "POST", path, body: {} })).status).toBe(401);
    expect((await at.ask({ method: "POST", path, headers: bearer(await at.signIn("submit")), body: {} })).status).toBe(
      403,
    );
    expect(
      (await at.ask({ door: "port", method: "POST", path, headers: bearer("r".repeat(43)), body: {} })).status,
    ).toBe(403);
  });

  it("guessing is slowed down, and keeps nobody out who has the right one", async () => {
    const guess = async (): Promise<string | undefined> =>
      (await at.ask({ method: "POST", path: SESSION, body: { code: "x".repeat(43) } })).code;
    const answers = [];
    for (let i = 0; i < 30; i += 1) answers.push(await guess());
    expect(answers.slice(0, 10).every((code) => code === "sign-in-refused")).toBe(true);
    expect(answers.slice(10).every((code) => code === "too-many-requests")).toBe(true);
    expect(typeof (await at.signIn())).toBe("string");
    at.pass(1000);
    expect(await guess()).toBe("sign-in-refused");
    expect(await guess()).toBe("too-many-requests");
  });

  it("what is no code, or far too long, is refused before it is looked at", async () => {
    const status = async (body: unknown): Promise<number> =>
      (await at.ask({ method: "POST", path: SESSION, body })).status;
    for (const body of [{}, { code: 7 }, { code: "" }, { code: "x", token: "y" }, { code: "x".repeat(201) }, [], "x"])
      expect(await status(body), JSON.stringify(body)).toBe(400);
    expect(await status({ code: "x".repeat(5000) })).toBe(413);
  });
});

describe("sessions", () => {
  it("do what their role allows, at every door, and end when signed out", async () => {
    const key = await at.signIn("read");
    for (const [door, host] of [
      ["page", "127.0.0.1:1"],
      ["socket", "localhost:8017"],
      ["port", "127.0.0.1"],
    ] as const)
      expect((await at.ask({ door, path: SERVER, headers: { host, ...bearer(key) } })).status, door).toBe(200);
    expect((await at.ask({ method: "POST", path: "/api/v1/server/stop", headers: bearer(key) })).status).toBe(403);
    const about = JSON.parse((await at.ask({ path: SESSION, headers: bearer(key) })).text) as Record<string, unknown>;
    expect(about).toMatchObject({ role: "read", expires: expect.stringMatching(/Z$/) });
    expect((await at.ask({ method: "DELETE", path: SESSION, headers: bearer(key) })).status).toBe(200);
    expect((await at.ask({ path: SERVER, headers: bearer(key) })).code).toBe("no-session");
  });

  it("end 12 hours after the last use, and after 7 days whatever is done", async () => {
    const status = async (key: string): Promise<number> =>
      (await at.ask({ path: SERVER, headers: bearer(key) })).status;
    const idle = await at.signIn();
    const busy = await at.signIn();
    at.pass(12 * HOUR - 1);
    expect(await status(busy)).toBe(200);
    at.pass(1);
    expect(await status(idle)).toBe(401);
    for (let hours = 12; hours < 7 * 24; hours += 11) {
      expect(await status(busy), `after ${hours} h`).toBe(200);
      at.pass(11 * HOUR);
    }
    expect(await status(busy)).toBe(401);
  });

  it("an open stream keeps one alive, and ends with it", async () => {
    const key = await at.signIn();
    const streamed = at.ask({ path: "/api/v1/events?follow=1", headers: bearer(key) });
    while (!at.reached.includes("events")) await new Promise((resolve) => setImmediate(resolve));
    at.pass(13 * HOUR);
    expect((await at.ask({ path: SERVER, headers: bearer(key) })).status).toBe(200);
    expect((await at.ask({ method: "DELETE", path: SESSION, headers: bearer(key) })).status).toBe(200);
    await expect(streamed).rejects.toThrow(/aborted|hang up/);
  });

  it("outlive the server where only its owner can listen in its place; signed out, they stay so", async () => {
    const signIn = async (door: "socket" | "page", role: string): Promise<string> => {
      const body = { code: await at.code(role) };
      const headers = { host: "localhost:8017", origin: "http://localhost:8017" };
      const { text } = await at.ask({ door, method: "POST", path: SESSION, headers, body });
      return (JSON.parse(text) as { key: string }).key;
    };
    const [tunnel, left, local] = [
      await signIn("socket", "read"),
      await signIn("socket", "admin"),
      await signIn("page", "admin"),
    ];
    await at.ask({ method: "DELETE", path: SESSION, headers: bearer(left) });
    const written = await readFile(at.book, "utf8");
    expect(written).not.toContain(tunnel);
    expect((await stat(at.book)).mode & 0o777).toBe(0o600);
    at.sessions.close();
    expect(await readFile(at.book, "utf8")).toBe(written);
    const after = await openTestDoors(undefined, at.book);
    try {
      const about = await after.ask({ path: SESSION, headers: bearer(tunnel) });
      expect([about.status, JSON.parse(about.text)]).toMatchObject([200, { role: "read" }]);
      const stop = { method: "POST", path: "/api/v1/server/stop", headers: bearer(tunnel) };
      expect((await after.ask(stop)).status).toBe(403);
      for (const key of [left, local])
        expect((await after.ask({ path: SERVER, headers: bearer(key) })).code).toBe("no-session");
      after.pass(12 * HOUR);
      expect((await after.ask({ path: SERVER, headers: bearer(tunnel) })).code).toBe("no-session");
    } finally {
      await after.close();
    }
  });

  it.each(["", "{", '{"version":1}', '{"version":1,"sessions":[{"hash":"x","role":"admin","expires":9e15}]}', "[]"])(
    "a file of theirs that was spoilt (%s) lets nobody in, and is replaced",
    async (text) => {
      await writeFile(at.book, text);
      const after = await openTestDoors(undefined, at.book);
      try {
        expect(after.sessions.size).toBe(0);
        after.sessions.begin(() => ({ kind: "admin" }), "admin");
        expect(await readFile(at.book, "utf8")).toMatch(/"role":"admin"/);
      } finally {
        await after.close();
      }
    },
  );

  it("are at most 200; the one that was quiet for longest goes", async () => {
    const keys = [];
    for (let i = 0; i < 201; i += 1) keys.push(at.sessions.begin(() => ({ kind: "admin" })).key);
    expect(at.sessions.size).toBe(200);
    expect((await at.ask({ path: SERVER, headers: bearer(keys[0]!) })).status).toBe(401);
    expect((await at.ask({ path: SERVER, headers: bearer(keys[200]!) })).status).toBe(200);
  });

  it("made from a token by hand have its role and end when it is revoked; tokens without a role are for programs", async () => {
    const token = "t".repeat(43);
    at.tokens.set(token, callerWith("carol", "submit"));
    at.tokens.set("u".repeat(43), { kind: "user", user: "alice" });
    const signIn = (token: string) => at.ask({ door: "port", method: "POST", path: SESSION, body: { token } });
    const signed = JSON.parse((await signIn(token)).text) as { key: string };
    expect(signed).toMatchObject({ role: "submit", name: "carol" });
    expect(signed.key).not.toBe(token);
    const use = async (): Promise<number> =>
      (await at.ask({ door: "port", path: SERVER, headers: bearer(signed.key) })).status;
    expect(await use()).toBe(200);
    at.tokens.delete(token);
    expect(await use()).toBe(401);
    expect((await signIn(token)).code).toBe("unauthorized");
    expect((await signIn("u".repeat(43))).code).toBe("forbidden");
    expect(JSON.parse((await signIn(OWNER)).text)).toMatchObject({ role: "admin", name: null });
  });
});

describe("the cookie of a site's own https", () => {
  const ORIGIN = "https://portal.example.org";
  const host = "portal.example.org";
  const signIn = async (): Promise<string> => {
    const body = { code: await at.code() };
    const answer = await at.ask({ method: "POST", path: SESSION, headers: { host, origin: ORIGIN }, body });
    expect(JSON.parse(answer.text)).toMatchObject({ key: null, role: "admin" });
    const [cookie = ""] = answer.headers["set-cookie"] ?? [];
    expect(cookie).toMatch(/^__Host-slipway=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=604800$/);
    return cookie.split(";")[0]!;
  };

  it("is set there and nowhere else", async () => {
    for (const settings of [{ hosts: [] }, { hosts: [host] }]) {
      at.settings = settings;
      const body = { code: await at.code() };
      const answer = await at.ask({ method: "POST", path: SESSION, headers: { origin: ORIGIN }, body });
      expect([answer.status, answer.headers["set-cookie"]]).toEqual([200, undefined]);
    }
    at.settings = { hosts: [], origin: ORIGIN };
    const body = { code: await at.code() };
    const elsewhere = await at.ask({ method: "POST", path: SESSION, headers: { origin: "http://127.0.0.1:1" }, body });
    expect(elsewhere.headers["set-cookie"]).toBeUndefined();
    await signIn();
  });

  it("changes something only for the site's own page", async () => {
    at.settings = { hosts: [], origin: ORIGIN };
    const cookie = await signIn();
    const get = (more: Record<string, string>) => at.ask({ path: SERVER, headers: { host, cookie, ...more } });
    expect((await get({})).status).toBe(200);
    expect((await get({ "sec-fetch-site": "same-origin" })).status).toBe(200);
    expect((await get({ "sec-fetch-site": "cross-site" })).status).toBe(401);
    expect((await get({ "sec-fetch-site": "same-site" })).status).toBe(401);
    at.reached.length = 0;
    const stop = (more: Record<string, string>) =>
      at.ask({ method: "POST", path: "/api/v1/server/stop", headers: { host, cookie, ...more } });
    for (const headers of [{}, { origin: "https://evil.example" }, { origin: "null" }, { origin: `${ORIGIN}:8443` }])
      expect((await stop(headers)).code, JSON.stringify(headers)).toBe("origin-refused");
    expect(at.reached).toEqual([]);
    expect((await stop({ origin: ORIGIN })).status).toBe(200);
    // once the site no longer says so, it is nothing
    at.settings = { hosts: [host] };
    expect((await get({})).status).toBe(401);
  });

  it("is taken back at sign-out", async () => {
    at.settings = { hosts: [], origin: ORIGIN };
    const cookie = await signIn();
    const out = await at.ask({ method: "DELETE", path: SESSION, headers: { host, cookie, origin: ORIGIN } });
    expect(out.headers["set-cookie"]).toEqual([expect.stringMatching(new RegExp(`^${COOKIE}=; .*Max-Age=0$`))]);
    expect((await at.ask({ path: SERVER, headers: { host, cookie } })).status).toBe(401);
  });
});

describe("strangers", () => {
  it("are asked to wait when they ask too often; whoever has shown a token is not", async () => {
    const key = await at.signIn("read");
    const codes: (string | undefined)[] = [];
    for (let batch = 0; batch < 7; batch += 1)
      codes.push(
        ...(await Promise.all(Array.from({ length: 50 }, () => at.ask({ path: SERVER })))).map(({ code }) => code),
      );
    expect(codes.filter((code) => code === "no-session").length).toBeLessThanOrEqual(300);
    const last = await at.ask({ path: SERVER });
    expect([last.status, last.code, last.headers["retry-after"]]).toEqual([429, "too-many-requests", "2"]);
    expect((await at.ask({ path: "/" })).status).toBe(429);
    expect((await at.ask({ path: SERVER, headers: bearer(key) })).status).toBe(200);
    expect((await at.ask({ door: "socket", path: SERVER, headers: { host: "slipway" } })).status).toBe(200);
    at.pass(1000);
    expect((await at.ask({ path: SERVER })).status).toBe(401);
  });

  it("a head that is far too long is refused by its length", async () => {
    const answer = await at.ask({ path: "/", headers: { "x-long": "x".repeat(20_000) } });
    expect([answer.status, answer.headers["connection"]]).toEqual([400, "close"]);
    expect(answer.text).toContain("longer than 8192 bytes");
  });

  it("every answer says that it is data, for nobody else", async () => {
    for (const answer of [await at.ask({ path: SERVER }), await at.ask({ path: SERVER, headers: bearer(OWNER) })])
      expect(answer.headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "cross-origin-resource-policy": "same-origin",
      });
  });
});
