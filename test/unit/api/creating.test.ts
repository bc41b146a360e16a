import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createApi } from "../../../src/api/app.ts";
import { ownersOnly } from "../../../src/api/entrance.ts";
import type { LaunchService } from "../../../src/api/launch-service.ts";
import type { Service } from "../../../src/api/service.ts";

/** Which requests create something, and that each of them is safe to send again. */

/** What POST does on each route: a new one must be said to be one or the other. */
const CREATE = ["/launches", "/pilots", "/runs", "/run-files", "/session/codes", "/tokens"];
/** Doing it twice is doing it once, or it creates nothing that lasts; a sign-in must never be repeated. */
const OTHERWISE = [
  "/clusters/{name}/check",
  "/launches/{launch}/clean",
  "/launches/{launch}/output",
  "/pilots/{pilot}/cancel",
  "/pilots/{pilot}/drain",
  "/runs/{run}/cancel",
  "/runs/{run}/retry",
  "/server/compact",
  "/server/reload",
  "/server/stop",
  "/session",
  "/outputs/known",
  "/validate",
];

const made: string[] = [];
const make = (what: string): number => {
  made.push(what);
  return made.length;
};
const pilot = (id: number): unknown => ({ id, state: "NEW" });

const app = createApi({
  service: {
    addPilots: async () => [pilot(make("pilots"))],
    submitText: async (_asked: unknown, key: string | undefined) => {
      make(`text ${key}`);
      return { run: 1, total: 1 };
    },
    submit: async (lines: AsyncIterable<unknown>) => {
      for await (const line of lines) {
        make(`run ${(line as { uuid?: string }).uuid}`);
        break;
      }
      return { run: 1, total: 1 };
    },
  } as unknown as Service,
  launches: {
    addToken: async () => ({ user: "ci", token: String(make("tokens")) }),
    launch: async (_caller: unknown, document: { uuid?: string }) => {
      make(`launch ${document.uuid}`);
      return { id: 1 };
    },
  } as unknown as LaunchService,
  numbers: {} as never,
  live: {} as never,
  series: {} as never,
  entrance: {
    ...ownersOnly(() => {
      throw new Error("not here");
    }),
    newCode: async () => ({ code: String(make("codes")), expires: 0, port: null }),
  },
  version: "0",
  clock: () => 0,
  log: () => undefined,
});

const ask = async (
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<{ status: number; text: string }> => {
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = {
    "content-type": "application/json",
    "content-length": String(text.length),
    ...(key === undefined ? {} : { "idempotency-key": key }),
  };
  const incoming = Object.assign(Readable.from([Buffer.from(text)]), { socket: {}, headers, method });
  const outgoing = { setHeader: () => undefined, once: () => undefined };
  const answer = await app.request(`/api/v1${path}`, { method, headers }, {
    incoming,
    outgoing,
    door: "socket",
  } as never);
  return { status: answer.status, text: await answer.text() };
};

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
}

describe("requests that create something", () => {
  it("are known, and take the header Idempotency-Key; others do not claim to", async () => {
    const { paths } = JSON.parse((await ask("GET", "/openapi.json")).text) as {
      paths: Record<string, { post?: Operation }>;
    };
    const posts = Object.entries(paths).flatMap(([path, { post }]) =>
      post === undefined ? [] : [{ path: path.replace("/api/v1", ""), post }],
    );
    const known = new Set([...CREATE, ...OTHERWISE]);
    expect(posts.map(({ path }) => path).filter((path) => !known.has(path))).toEqual([]);
    for (const { path, post } of posts)
      expect(
        (post.parameters ?? []).some(({ in: where, name }) => where === "header" && name === "idempotency-key"),
        path,
      ).toBe(CREATE.includes(path));
  });

  it("sent again with the same key, create nothing more; with another body they are refused", async () => {
    for (const [path, body, other] of [
      ["/pilots", { count: 1 }, { count: 2 }],
      ["/tokens", { user: "ci", role: "read" }, { user: "ci", role: "admin" }],
      ["/session/codes", { role: "read" }, { role: "admin" }],
    ] as const) {
      const key = randomUUID();
      made.length = 0;
      const first = await ask("POST", path, body, key);
      expect(first.status, first.text).toBe(200);
      expect(await ask("POST", path, body, key)).toEqual(first);
      expect(made, path).toHaveLength(1);
      expect(await ask("POST", path, other, key)).toMatchObject({
        status: 409,
        text: expect.stringContaining("key-reused"),
      });
      await ask("POST", path, body, randomUUID());
      expect(made, path).toHaveLength(2);
    }
  });

  it("of runs and launches the key is the uuid, which the journal keeps", async () => {
    for (const [path, what] of [
      ["/runs", "run"],
      ["/launches", "launch"],
    ] as const) {
      const key = randomUUID();
      made.length = 0;
      expect((await ask("POST", path, { name: "x" }, key)).status).toBeLessThan(300);
      expect(made).toEqual([`${what} ${key}`]);
      expect((await ask("POST", path, { uuid: randomUUID() }, key)).status).toBe(400);
      expect((await ask("POST", path, {}, "no-uuid")).status).toBe(400);
    }
    const key = randomUUID();
    made.length = 0;
    expect((await ask("POST", "/run-files", { text: "tasks: []", cwd: "/" }, key)).status).toBe(200);
    expect(made).toEqual([`text ${key}`]);
  });
});
