import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createApi } from "../../../src/api/app.ts";
import { type Caller, callerWith } from "../../../src/api/caller.ts";
import type { LaunchService } from "../../../src/api/launch-service.ts";
import { ACCESS } from "../../../src/api/roles.ts";
import type { Service } from "../../../src/api/service.ts";
import { createEntrance } from "../../../src/doors/entrance.ts";
import { SlipwayError } from "../../../src/errors.ts";

/** Who may do what, asked of the API itself: every route of its OpenAPI document, with every kind of token. */

const CALLERS: Readonly<Record<string, Caller>> = {
  read: callerWith("grafana", "read"),
  submit: callerWith("ci", "submit"),
  admin: callerWith("boss", "admin"),
  user: { kind: "user", user: "alice" },
  job: { kind: "job", launch: 7 },
};

/** Whatever a route asks of the server, it got past the door. */
const reached = new Proxy({} as Record<string, unknown>, {
  get: () => () => {
    throw new SlipwayError("stopping");
  },
});

/** Far apart: nobody is asked to wait. */
let now = 0;

const app = createApi({
  service: reached as unknown as Service,
  launches: { ...({} as LaunchService), ...proxyOf() },
  numbers: { text: () => "", sums: () => ({}) as never, unready: () => null },
  live: reached as never,
  series: reached as never,
  entrance: createEntrance({
    token: "the-owner's",
    callerOf: (token) => CALLERS[token],
    settings: () => ({ hosts: [] }),
    clock: () => (now += 10_000),
    listen: async () => 1,
  }),
  version: "0",
  clock: () => 0,
  log: () => undefined,
});

function proxyOf(): LaunchService {
  const refuse = (): never => {
    throw new SlipwayError("stopping");
  };
  return {
    callerOf: (token: string) => CALLERS[token],
    launch: refuse,
    preview: refuse,
    list: refuse,
    show: refuse,
    detail: refuse,
    watch: refuse,
    logs: refuse,
    cancel: refuse,
    clean: refuse,
    receive: refuse,
    tokens: refuse,
    addToken: refuse,
    removeToken: refuse,
  } as LaunchService;
}

const ask = async (method: string, template: string, token: string | undefined, remote = true): Promise<number> => {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => (name === "launch" ? "7" : "1"));
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const facts = { socket: {}, headers: { host: "slipway", ...headers }, method };
  const incoming = Object.assign(Readable.from([]), facts);
  const outgoing = { setHeader: () => undefined, once: () => undefined, writeHead: () => undefined };
  const door = remote ? "port" : "socket";
  const answer = await app.request(path, { method, headers }, { incoming, outgoing, door } as never);
  return answer.status;
};

const routes = async (): Promise<string[]> => {
  const incoming = { socket: {}, headers: { host: "slipway" }, method: "GET" };
  const answer = await app.request("/api/v1/openapi.json", {}, {
    incoming,
    door: "socket",
    outgoing: { setHeader: () => undefined },
  } as never);
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, unknown>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
};

const allowed = async (token: string | undefined): Promise<string[]> => {
  const found: string[] = [];
  for (const route of await routes()) {
    const [method, path] = route.split(" ") as [string, string];
    if (![401, 403].includes(await ask(method, path, token))) found.push(route);
  }
  return found;
};

describe("roles", () => {
  it("every route of the document is in the table, and nothing else is", async () => {
    expect((await routes()).toSorted()).toEqual([...ACCESS.keys()].toSorted());
  });

  it("read may look at everything but the tokens, and change nothing but its own session", async () => {
    const all = await routes();
    const own = ["POST /api/v1/session", "DELETE /api/v1/session"];
    expect(await allowed("read")).toEqual(
      all.filter((route) => own.includes(route) || (route.startsWith("GET ") && route !== "GET /api/v1/tokens")),
    );
  });

  it("submit may also submit, cancel, retry, launch and check; pilots, tokens and the server itself are an admin's", async () => {
    const more = (await allowed("submit")).filter((route) => !route.startsWith("GET "));
    expect(more.toSorted()).toEqual([
      "DELETE /api/v1/launches/{launch}",
      "DELETE /api/v1/session",
      "POST /api/v1/clusters/{name}/check",
      "POST /api/v1/launches",
      "POST /api/v1/launches/{launch}/clean",
      "POST /api/v1/outputs/known",
      "POST /api/v1/run-files",
      "POST /api/v1/runs",
      "POST /api/v1/runs/{run}/cancel",
      "POST /api/v1/runs/{run}/retry",
      "POST /api/v1/session",
      "POST /api/v1/validate",
    ]);
    expect(await allowed("submit")).not.toContain("GET /api/v1/tokens");
  });

  it("admin may do everything, as the home's owner and whoever reaches the socket", async () => {
    const all = await routes();
    expect(await allowed("admin")).toEqual(all);
    expect(await allowed("the-owner's")).toEqual(all);
    for (const route of all) {
      const [method, path] = route.split(" ") as [string, string];
      expect([401, 403], route).not.toContain(await ask(method, path, undefined, false));
    }
  });

  it("a user's token without a role covers their own launches, as before", async () => {
    expect((await allowed("user")).toSorted()).toEqual(
      [...ACCESS]
        .filter(([, { users, anyone }]) => users === true || anyone === true)
        .map(([route]) => route)
        .toSorted(),
    );
    expect((await allowed("user")).every((route) => /launches|jobs|why$|server$|session$|openapi|z$/.test(route))).toBe(
      true,
    );
  });

  it("a job's token is good for its own log alone", async () => {
    expect(await allowed("job")).toEqual(["POST /api/v1/launches/{launch}/output"]);
  });

  it("without a token, or with a wrong one, only the two questions about life are answered, and signing in is tried", async () => {
    for (const token of [undefined, "wrong"])
      expect(await allowed(token)).toEqual(["GET /healthz", "GET /readyz", "POST /api/v1/session"]);
    expect(await ask("POST", "/api/v1/session", undefined)).toBe(421);
    expect(await ask("GET", "/api/v1/session", undefined)).toBe(401);
    expect(await ask("GET", "/metrics", undefined)).toBe(401);
    expect(await ask("GET", "/nothing", undefined)).toBe(401);
  });
});
