import http from "node:http";
import net from "node:net";
import { hostname } from "node:os";
import type { Duplex } from "node:stream";
import type { Endpoint } from "../protocol/endpoint.ts";
import { dialServer, established } from "../protocol/dial-server.ts";

/** Whether the server's pid and unix socket mean anything here. */
export const isHere = (endpoint: Endpoint): boolean => endpoint.socket !== "" && endpoint.host === hostname();

/** What people see of where we connect to. */
export const addressOf = (endpoint: Endpoint): string =>
  isHere(endpoint) ? endpoint.socket : `https://${bracketed(endpoint.addresses[0] ?? endpoint.host)}:${endpoint.port}`;

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

const dialLocal = async (endpoint: Endpoint): Promise<net.Socket> => {
  const socket = net.connect({ path: endpoint.socket });
  await established(socket, "connect");
  return socket;
};

type Created = (error: Error | null, socket?: Duplex) => void;

/** A keep-alive agent whose every connection goes to this server, by the unix socket where that is possible. */
export const agentFor = (endpoint: Endpoint): http.Agent => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64, maxFreeSockets: 4 });
  const dial = isHere(endpoint) ? dialLocal : dialServer;
  const createConnection = (_options: unknown, created: Created): undefined => {
    dial(endpoint).then(
      (socket) => created(null, socket),
      (error: unknown) => created(error instanceof Error ? error : new Error(String(error))),
    );
    return undefined;
  };
  return Object.assign(agent, { createConnection });
};
