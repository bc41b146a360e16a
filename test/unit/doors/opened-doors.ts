import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../../../src/api/app.ts";
import type { Door } from "../../../src/api/base.ts";
import { type Caller, callerWith } from "../../../src/api/caller.ts";
import type { LaunchService } from "../../../src/api/launch-service.ts";
import type { Service } from "../../../src/api/service.ts";
import type { PageSettings } from "../../../src/config/page-keys.ts";
import { createEntrance } from "../../../src/doors/entrance.ts";
import { openDoors } from "../../../src/doors/http.ts";
import { openSessionBook } from "../../../src/doors/session-book.ts";
import { createPage } from "../../../src/doors/page.ts";
import { MOST_STRANGERS, createStrangers } from "../../../src/doors/strangers.ts";
import { SlipwayError } from "../../../src/errors.ts";
import { makeCertificate, makeKey } from "../../../src/home/certificate.ts";

/** The real doors with the real API behind them; what the API asks of a server is answered in a word. */

export const OWNER = "o".repeat(43);

export interface Asked {
  readonly door?: Door;
  readonly method?: string;
  readonly path: string;
  /** Null leaves one out that would be sent otherwise. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Of an error. */
  readonly code: string | undefined;
}

const parsed = (text: string): Record<string, unknown> => {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
};

export interface OpenedDoors {
  /** Holds the page's files; empty at first. */
  readonly pageDirectory: string;
  readonly socket: string;
  readonly port: number;
  /** Of the door for browsers, which is open. */
  pagePort(): Promise<number>;
  readonly doors: Awaited<ReturnType<typeof openDoors>>;
  /** The file with the sessions that outlive the server. */
  readonly book: string;
  readonly sessions: ReturnType<typeof createEntrance>["sessions"];
  /** Tokens that are good, by their text. */
  readonly tokens: Map<string, Caller>;
  /** Of the server's clock. */
  pass(ms: number): void;
  settings: PageSettings;
  /** Whoever asked the service something, in order. */
  readonly reached: string[];
  ask(asked: Asked): Promise<Answer>;
  /** A code, as `slipway open` gets it. */
  code(role?: string): Promise<string>;
  /** Signs in at the page's door, as a browser does. */
  signIn(role?: string): Promise<string>;
  close(): Promise<void>;
}

/** With the book of an `earlier` one these are the doors of a server that comes after another. */
export const openTestDoors = async (most = MOST_STRANGERS, earlier?: string): Promise<OpenedDoors> => {
  const root = await mkdtemp(join(tmpdir(), "slipway-doors-"));
  const book = earlier ?? join(root, "sessions.json");
  const keyPem = await makeKey();
  const cert = await makeCertificate(keyPem);
  const tokens = new Map<string, Caller>([["r".repeat(43), callerWith("grafana", "read")]]);
  const reached: string[] = [];
  // the server's clock has fractions
  let clock = 1_800_000_000_000.25;
  let settings: PageSettings = { hosts: [] };
  const served: Partial<Service> = {
    server: () => {
      reached.push("server");
      return { pid: 1 } as never;
    },
    stop: () => {
      reached.push("stop");
      return { state: "stopping" };
    },
    events: (_query, signal) => {
      reached.push("events");
      return (async function* () {
        yield { seq: 1 } as never;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      })();
    },
  };
  const service = new Proxy(served, {
    get: (target, name) =>
      target[name as keyof Service] ??
      (() => {
        throw new SlipwayError("stopping");
      }),
  }) as Service;
  const launches = { callerOf: (token: string) => tokens.get(token) } as unknown as LaunchService;
  const entrance = createEntrance({
    token: OWNER,
    callerOf: (token) => tokens.get(token),
    settings: () => settings,
    clock: () => clock,
    book: openSessionBook(book, () => undefined),
    listen: (port) => doors.page.open(port),
  });
  const strangers = createStrangers(() => most);
  const socket = join(root, "api.sock");
  const pageDirectory = join(root, "page");
  const doors = await openDoors({
    api: createApi({
      service,
      launches,
      numbers: { text: () => "numbers", sums: () => ({}) as never, unready: () => null },
      live: {} as never,
      series: {} as never,
      entrance,
      version: "0",
      clock: () => clock,
      onKnown: (connection) => strangers.known(connection),
      log: () => undefined,
    }),
    socketPath: socket,
    agentSocketPath: join(root, "agents.sock"),
    host: "127.0.0.1",
    port: 0,
    key: keyPem,
    cert,
    strangers,
    page: createPage({ directory: pageDirectory, admit: entrance.admitPage, log: () => undefined }),
    sessions: entrance.sessions,
    clock: () => clock,
    onAgent: (connection) => connection.destroy(),
  });
  const pagePort = (): Promise<number> => doors.page.open(0);
  const ask = async ({ door = "page", method = "GET", path, headers = {}, body }: Asked): Promise<Answer> => {
    const to =
      door === "socket"
        ? { socketPath: socket }
        : { host: "127.0.0.1", port: door === "port" ? doors.port : await pagePort() };
    const text = body === undefined ? undefined : JSON.stringify(body);
    const type = text === undefined ? {} : { "content-type": "application/json" };
    const options = { ...to, method, path, headers: { ...type, ...headers }, agent: false as const };
    return new Promise((resolve, reject) => {
      const make = door === "port" ? httpsRequest : httpRequest;
      const sent = make({ ...options, rejectUnauthorized: false }, (answer) => {
        let all = "";
        answer.setEncoding("utf8").on("data", (piece: string) => (all += piece));
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            text: all,
            code: parsed(all)["code"] as string | undefined,
          }),
        );
        answer.on("error", reject);
      });
      sent.on("error", reject).end(text);
    });
  };
  const code = async (role?: string): Promise<string> => {
    const body = role === undefined ? {} : { role };
    const headers = { host: "slipway" };
    const { text } = await ask({ door: "socket", method: "POST", path: "/api/v1/session/codes", headers, body });
    return parsed(text)["code"] as string;
  };
  return {
    pageDirectory,
    socket,
    port: doors.port,
    pagePort,
    doors,
    book,
    sessions: entrance.sessions,
    tokens,
    pass: (ms) => {
      clock += ms;
    },
    get settings() {
      return settings;
    },
    set settings(next) {
      settings = next;
    },
    reached,
    ask,
    code,
    signIn: async (role) => {
      const body = { code: await code(role) };
      return parsed((await ask({ method: "POST", path: "/api/v1/session", body })).text)["key"] as string;
    },
    close: async () => {
      await doors.close();
      await rm(root, { recursive: true, force: true });
    },
  };
};
