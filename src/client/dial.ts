import http from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";
import { type Endpoint, isHere } from "../protocol/endpoint.ts";
import { established } from "../protocol/established.ts";

/** We never know the socket of somebody else's server, only its address. */
const hasSocketHere = (endpoint: Endpoint): boolean => endpoint.socket !== "" && isHere(endpoint);

/** What people see of where we connect to. */
export const addressOf = (endpoint: Endpoint): string =>
  hasSocketHere(endpoint)
    ? endpoint.socket
    : `https://${bracketed(endpoint.addresses[0] ?? endpoint.host)}:${endpoint.port}`;

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

const dialLocal = async (endpoint: Endpoint): Promise<net.Socket> => {
  const socket = net.connect({ path: endpoint.socket });
  await established(socket, "connect");
  return socket;
};

/** TLS is for those who come from elsewhere: it takes longer to load than the unix socket takes to answer. */
const dialAway = async (endpoint: Endpoint): Promise<net.Socket> =>
  (await import("../protocol/dial-server.ts")).dialServer(endpoint);

type Created = (error: Error | null, socket?: Duplex) => void;

/** A keep-alive agent whose every connection goes to this server, by the unix socket where that is possible. */
export const agentFor = (endpoint: Endpoint): http.Agent => {
  // each connection knows itself where it goes: Node need not look for a name to ask for
  const options = { keepAlive: true, maxSockets: 64, maxFreeSockets: 4, servername: "" };
  const agent = new http.Agent(options);
  const dial = hasSocketHere(endpoint) ? dialLocal : dialAway;
  const createConnection = (_options: unknown, created: Created): undefined => {
    dial(endpoint).then(
      (socket) => created(null, socket),
      (error: unknown) => created(error instanceof Error ? error : new Error(String(error))),
    );
    return undefined;
  };
  return Object.assign(agent, { createConnection });
};
