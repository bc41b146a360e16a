import type { Socket } from "node:net";

/**
 * Connections at the port that have not shown a token. So many may be there at once: one more, and the oldest goes. Who
 * has shown a token is no stranger any more and is never pushed out by others.
 */

export const MOST_STRANGERS = 1000;

export interface Strangers {
  /** Has come; with TLS around it, it is the same one. */
  met(socket: Socket): void;
  /** Has shown a token. */
  known(socket: Socket): void;
  readonly size: number;
}

/** A connection's ends: the same for a socket and for the TLS around it. Undefined when it is gone already. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string | undefined =>
  remotePort === undefined ? undefined : `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;

export const createStrangers = (most = MOST_STRANGERS): Strangers => {
  // in the order in which they came
  const sockets = new Map<string, Socket>();
  return {
    met: (socket) => {
      const name = nameOf(socket);
      if (name === undefined) return void socket.destroy();
      sockets.set(name, socket);
      socket.once("close", () => {
        if (sockets.get(name) === socket) sockets.delete(name);
      });
      if (sockets.size <= most) return;
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
