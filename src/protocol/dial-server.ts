import tls from "node:tls";
import type net from "node:net";
import { hostname } from "node:os";
import { type Endpoint, OPEN_TO_OTHERS, isLoopback } from "./endpoint.ts";
import { established } from "./established.ts";
import { pinOf } from "./pin.ts";

/** What is needed to reach a server over the network. */
export type Reachable = Pick<Endpoint, "host" | "addresses" | "port" | "keyPin">;

/**
 * Tries the server's addresses in turn. Only the key is trusted: names and dates in the certificate mean nothing, and
 * nothing is sent before the key has been compared.
 */
export const dialServer = async (endpoint: Reachable): Promise<net.Socket> => {
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
      last = new Error(`${host} does not answer with the key of this home's server`);
    } catch (error) {
      last = error;
    }
  }
  if (endpoint.host === hostname() || !addresses.every(isLoopback)) throw last;
  throw new Error(`${(last as Error).message}; it listens on ${endpoint.host} alone: ${OPEN_TO_OTHERS}`, {
    cause: last,
  });
};
