import http from "node:http";
import net from "node:net";
import { hostname } from "node:os";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Endpoint } from "../protocol/endpoint.ts";
import { pinOf } from "../protocol/pin.ts";

export const CONNECT_TIMEOUT = 5000;

/** Whether the server's pid and unix socket mean anything here. */
export const isHere = (endpoint: Endpoint): boolean => endpoint.host === hostname();

/** What people see of where we connect to. */
export const addressOf = (endpoint: Endpoint): string =>
  isHere(endpoint) ? endpoint.socket : `https://${bracketed(endpoint.addresses[0] ?? endpoint.host)}:${endpoint.port}`;

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

const established = async (socket: net.Socket, event: "connect" | "secureConnect"): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no connection within ${CONNECT_TIMEOUT / 1000} s`)), CONNECT_TIMEOUT);
      socket.once(event, resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("the connection was closed while it was being made")));
    });
  } catch (error) {
    socket.on("error", () => socket.destroy());
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    socket.removeAllListeners("close");
    socket.removeAllListeners(event);
    if (!socket.destroyed) socket.removeAllListeners("error");
  }
};

const dialLocal = async (endpoint: Endpoint): Promise<net.Socket> => {
  const socket = net.connect({ path: endpoint.socket });
  await established(socket, "connect");
  return socket;
};

/**
 * Tries the server's addresses in turn. The key is what is trusted: names and dates in the certificate mean nothing, and
 * nothing is sent before the key was compared.
 */
const dialRemote = async (endpoint: Endpoint): Promise<net.Socket> => {
  let last: unknown = new Error("the server published no address");
  const addresses = endpoint.addresses.length > 0 ? endpoint.addresses : [endpoint.host];
  for (const host of addresses) {
    try {
      const socket = tls.connect({
        host,
        port: endpoint.port,
        rejectUnauthorized: false,
        checkServerIdentity: () => undefined,
        ALPNProtocols: ["http/1.1"],
        minVersion: "TLSv1.2",
      });
      await established(socket, "secureConnect");
      if (pinOf(socket) === endpoint.keyPin) return socket;
      socket.destroy();
      last = new Error(`${host} answers with another key than this home's server`);
    } catch (error) {
      last = error;
    }
  }
  throw last;
};

type Created = (error: Error | null, socket?: Duplex) => void;

/** A keep-alive agent whose every connection goes to this server, by the unix socket where that is possible. */
export const agentFor = (endpoint: Endpoint): http.Agent => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64, maxFreeSockets: 4 });
  const dial = isHere(endpoint) ? dialLocal : dialRemote;
  const createConnection = (_options: unknown, created: Created): undefined => {
    dial(endpoint).then(
      (socket) => created(null, socket),
      (error: unknown) => created(error instanceof Error ? error : new Error(String(error))),
    );
    return undefined;
  };
  return Object.assign(agent, { createConnection });
};
