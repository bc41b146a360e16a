import type { Socket } from "node:net";

/**
 * Connections to the port that have not shown a token. Only so many may exist at once: one more, and the oldest is
 * closed. A connection that has shown a token is no longer a stranger, and strangers never push it out. After a restart
 * all agents come back at once, and must not push each other out: so there is room for each of them besides.
 */

export const MOST_STRANGERS = 1000;

export interface Strangers {
  /** A connection has come; with TLS around it, it is still the same one. */
  met(socket: Socket): void;
  /** It has shown a token. */
  known(socket: Socket): void;
  readonly size: number;
}

/** A connection's two ends: the same for a socket and for the TLS around it. Undefined when it is already gone. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string | undefined =>
  remotePort === undefined ? undefined : `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;

export const createStrangers = (most: () => number = () => MOST_STRANGERS): Strangers => {
  // in order of arrival
  const sockets = new Map<string, Socket>();
  return {
    met: (socket) => {
      const name = nameOf(socket);
      if (name === undefined) return void socket.destroy();
      sockets.set(name, socket);
      socket.once("close", () => {
        if (sockets.get(name) === socket) sockets.delete(name);
      });
      if (sockets.size <= most()) return;
      for (const [first, oldest] of sockets) {
        sockets.delete(first);
        return void oldest.destroy();
      }
    },
    known: (socket) => {
      const name = nameOf(socket);
      if (name !== undefined) sockets.delete(name);
    },
    get size() {
      return sockets.size;
    },
  };
};
