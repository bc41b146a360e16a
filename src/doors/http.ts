import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { type Server as HttpServer, type RequestListener, createServer } from "node:http";
import { type Server as HttpsServer, createServer as createHttpsServer } from "node:https";
import { networkInterfaces } from "node:os";
import { type Server, type Socket, createServer as createPlainServer } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { getRequestListener } from "@hono/node-server";
import type { Api, Door } from "../api/base.ts";
import { PROBLEM_TYPE, problemOf } from "../api/problem.ts";
import { SlipwayError } from "../errors.ts";
import { repeatTimer } from "../long-timer.ts";
import { AGENT_PROTOCOL } from "../protocol/version.ts";
import type { Page } from "./page.ts";
import { type PageDoor, createPageDoor } from "./page-door.ts";
import type { Sessions } from "./sessions.ts";
import type { Strangers } from "./strangers.ts";

/**
 * The doors: two unix sockets for this machine, for HTTP and for agents, and one TLS port for both, told apart by ALPN, so that
 * a firewall needs one hole; and while somebody looks at the page with a browser of this machine, a port for that
 * (page-door.ts). Connections that do not finish their handshake or their headers in time are closed.
 */

const HANDSHAKE_MS = 10_000;
const HEADERS_MS = 20_000;
/** The longest head of a request: strangers send heads too. */
const MOST_HEAD_BYTES = 8192;
const MOST_HEADERS = 64;
/** The time between two looks for sessions that are over. */
const SWEEP_MS = 60_000;
/** The time between two looks for connections that are late with their headers. */
const CHECK_MS = 5000;

export interface Doors {
  readonly port: number;
  readonly addresses: readonly string[];
  /** For browsers on this machine. */
  readonly page: PageDoor;
  close(): Promise<void>;
}

export interface DoorsOptions {
  readonly api: Api;
  /** Sockets of this machine, in a directory that nobody else may enter. */
  readonly socketPath: string;
  readonly agentSocketPath: string;
  readonly host: string;
  readonly port: number;
  readonly key: string;
  readonly cert: string;
  readonly strangers: Strangers;
  readonly page: Page;
  readonly sessions: Sessions;
  readonly clock: () => number;
  readonly onAgent: (socket: Socket) => void;
}

/** Addresses where other hosts may reach this one, loopback first for clients on the same machine. */
const ownAddresses = (host: string): string[] => {
  if (host !== "0.0.0.0" && host !== "::") return [host];
  const addresses = ["127.0.0.1"];
  for (const list of Object.values(networkInterfaces()))
    for (const { address, internal, family } of list ?? [])
      if (!internal && (family === "IPv4" || (host === "::" && !address.startsWith("fe80")))) addresses.push(address);
  return addresses;
};

/** Connections that the kernel takes for us meanwhile, if it allows that many: after a restart all agents come at once. */
const MOST_WAITING = 4096;

const listen = async (server: Server, where: object): Promise<void> => {
  server.listen({ ...where, backlog: MOST_WAITING });
  await once(server, "listening");
};

const listenHere = async (server: Server, path: string): Promise<void> => {
  await rm(path, { force: true });
  await listen(server, { path });
  await chmod(path, 0o600);
};

/** A submission of a million lines may take its time; headers may not. */
const patience = <S extends HttpServer | HttpsServer>(server: S): S => {
  server.requestTimeout = 0;
  server.headersTimeout = HEADERS_MS;
  server.keepAliveTimeout = 60_000;
  server.maxHeadersCount = MOST_HEADERS;
  server.on("clientError", refuseNoise);
  return server;
};

/** Anything that is not HTTP, or has too long a head, is answered with the reason; late or closed connections are not. */
const refuseNoise = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  if (!socket.writable || !error.code?.startsWith("HPE_")) return void socket.destroy();
  const detail =
    error.code === "HPE_HEADER_OVERFLOW"
      ? `the head of the request is longer than ${MOST_HEAD_BYTES} bytes`
      : `this is not HTTP: ${error.message}`;
  const body = JSON.stringify(problemOf(new SlipwayError("bad-request", { detail })));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: ${PROBLEM_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
};

/** Answers what comes through one door. */
const listenerOf = ({ api, page }: DoorsOptions, door: Door): RequestListener => {
  const fetch = (request: Request, env: object) => api.fetch(request, Object.assign(env, { door }) as never);
  // its own Request and Response replace the global ones: those of undici cost half a millisecond per request
  const answer = getRequestListener(fetch, { overrideGlobalObjects: true }) as RequestListener;
  return (incoming, outgoing) => {
    if (!page.answer(incoming, outgoing, door)) answer(incoming, outgoing);
  };
};

const PLAIN = { connectionsCheckingInterval: CHECK_MS, maxHeaderSize: MOST_HEAD_BYTES };

export const openDoors = async (options: DoorsOptions): Promise<Doors> => {
  const { strangers, sessions } = options;
  const sockets = new Set<Socket>();
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // a client that goes away is not a server error
    socket.on("error", () => socket.destroy());
  };

  // Only a server that listens itself looks for connections that never finish their headers.
  const tls = patience(
    createHttpsServer(
      {
        key: options.key,
        cert: options.cert,
        // nobody is known by a certificate here: reading the system's authorities would only cost time
        ca: [],
        ALPNProtocols: [AGENT_PROTOCOL, "http/1.1"],
        minVersion: "TLSv1.3",
        handshakeTimeout: HANDSHAKE_MS,
        connectionsCheckingInterval: CHECK_MS,
        maxHeaderSize: MOST_HEAD_BYTES,
      },
      listenerOf(options, "port"),
    ),
  );
  const speakHttp = tls.listeners("secureConnection") as ((this: HttpsServer, socket: TLSSocket) => void)[];
  tls.removeAllListeners("secureConnection");
  tls.on("connection", (socket: Socket) => {
    track(socket);
    strangers.met(socket);
  });
  tls.on("tlsClientError", (_error, socket) => socket.destroy());
  tls.on("secureConnection", (socket) => {
    strangers.met(socket);
    if (socket.alpnProtocol === AGENT_PROTOCOL) options.onAgent(socket);
    else for (const speak of speakHttp) speak.call(tls, socket);
  });

  const local = patience(createServer(PLAIN, listenerOf(options, "socket")));
  local.on("connection", track);
  // only the owner can enter the directory: these agents need no TLS and are never strangers
  const localAgents = createPlainServer((socket) => {
    track(socket);
    options.onAgent(socket);
  });
  await listenHere(local, options.socketPath);
  await listenHere(localAgents, options.agentSocketPath);
  await listen(tls, { port: options.port, host: options.host });
  const address = tls.address() as { port: number };
  const page = createPageDoor({
    create: () => patience(createServer(PLAIN, listenerOf(options, "page"))),
    met: (socket) => {
      track(socket);
      strangers.met(socket);
    },
    lastUsed: () => sessions.lastUsed,
    clock: options.clock,
  });
  const sweep = repeatTimer(SWEEP_MS, sessions.sweep);

  return {
    port: address.port,
    addresses: ownAddresses(options.host),
    page,
    close: async () => {
      sweep.stop();
      page.close();
      tls.close();
      local.close();
      localAgents.close();
      // give answers on their way a moment
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (const socket of sockets) socket.destroy();
      for (const path of [options.socketPath, options.agentSocketPath]) await rm(path, { force: true });
    },
  };
};
