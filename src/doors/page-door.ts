import { once } from "node:events";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { SlipwayError } from "../errors.ts";
import { type LongTimer, repeatTimer } from "../long-timer.ts";

/**
 * The door for browsers on the same machine: plain HTTP on 127.0.0.1, since a browser opens no unix socket and knows no
 * pinned key. It is closed until somebody asks for it, and closes when nobody was signed in for 12 hours.
 *
 *   closed ── open() ──► open ── 12 h without a session, or the server ends ──► closed
 */
export interface PageDoor {
  /** The port that is open from now on: the one asked for, any free one for 0, or the one that was open already. */
  open(port: number): Promise<number>;
  /** Undefined while it is closed. */
  readonly port: number | undefined;
  /** Closes it if nobody used it for too long. */
  look(): void;
  close(): void;
}

export const CLOSE_AFTER_MS = 12 * 3_600_000;
const LOOK_MS = 60_000;
const LOOPBACK = "127.0.0.1";

export interface PageDoorOptions {
  readonly create: () => Server;
  /** A connection has come. */
  readonly met: (socket: Socket) => void;
  /** When a session was last in use. */
  readonly lastUsed: () => number;
  readonly clock: () => number;
}

export const createPageDoor = ({ create, met, lastUsed, clock }: PageDoorOptions): PageDoor => {
  let opening: Promise<{ readonly server: Server; readonly port: number }> | undefined;
  let now: { readonly server: Server; readonly port: number; readonly since: number } | undefined;
  let timer: LongTimer | undefined;

  const listen = async (port: number): Promise<{ readonly server: Server; readonly port: number }> => {
    const server = create();
    server.on("connection", met);
    try {
      server.listen({ port, host: LOOPBACK, exclusive: true });
      await once(server, "listening");
    } catch (error) {
      throw new SlipwayError("port-taken", { port, detail: (error as Error).message }, error);
    }
    return { server, port: (server.address() as { port: number }).port };
  };
  const close = (): void => {
    timer?.stop();
    opening = undefined;
    now?.server.close();
    now?.server.closeAllConnections();
    now = undefined;
  };
  const look = (): void => {
    if (now !== undefined && clock() - Math.max(now.since, lastUsed()) >= CLOSE_AFTER_MS) close();
  };
  return {
    open: async (port) => {
      opening ??= listen(port).then(
        (opened) => {
          now = { ...opened, since: clock() };
          timer = repeatTimer(LOOK_MS, look);
          return opened;
        },
        (error: unknown) => {
          opening = undefined;
          throw error;
        },
      );
      return (await opening).port;
    },
    get port() {
      return now?.port;
    },
    look,
    close,
  };
};
