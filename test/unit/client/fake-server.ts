import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import type { Endpoint } from "../../../src/protocol/endpoint.ts";

export type Answer = (request: http.IncomingMessage, response: http.ServerResponse) => void;

export interface FakeServer {
  readonly home: string;
  readonly requests: string[];
  /** What the endpoint file would say; undefined while nothing listens. */
  endpoint(): Promise<Endpoint | undefined>;
  listen(): Promise<void>;
  /** Ends at once with all connections, as a killed process would. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** A real HTTP server on a unix socket in a home of its own, answering by `METHOD /path` below /api/v1. */
export const fakeServer = async (routes: Record<string, Answer>): Promise<FakeServer> => {
  const home = await mkdtemp(path.join(tmpdir(), "slipway-client-"));
  const socket = path.join(home, "s");
  const requests: string[] = [];
  let server: http.Server | undefined;
  let epoch = 0;
  const kill = async (): Promise<void> => {
    const ending = server;
    server = undefined;
    if (ending === undefined) return;
    const closed = new Promise((resolve) => ending.close(resolve));
    ending.closeAllConnections();
    await closed;
  };
  const listen = async (): Promise<void> => {
    epoch++;
    server = http.createServer((request, response) => {
      const key = `${request.method} ${(request.url ?? "").replace("/api/v1", "")}`;
      requests.push(key);
      const route = routes[key];
      if (route !== undefined) return route(request, response);
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code: "not-found", message: "", hint: "", facts: { what: key } } }));
    });
    await new Promise<void>((resolve) => server!.listen(socket, resolve));
  };
  await listen();
  return {
    home,
    requests,
    endpoint: async () =>
      server === undefined
        ? undefined
        : ({
            pid: process.pid,
            host: hostname(),
            addresses: [],
            port: 0,
            socket,
            keyPin: "",
            epoch,
          } as unknown as Endpoint),
    listen,
    kill,
    remove: async () => {
      await kill();
      await rm(home, { recursive: true, force: true });
    },
  };
};

export const json =
  (value: unknown, status = 200): Answer =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };

export const bodyOf = async (request: http.IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
};
