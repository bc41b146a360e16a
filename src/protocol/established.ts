import type net from "node:net";

export const CONNECT_TIMEOUT = 5000;

/** Resolves when a connection has been made; throws, and lets go of it, when it has failed or takes too long. */
export const established = async (socket: net.Socket, event: "connect" | "secureConnect"): Promise<void> => {
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
