import { once } from "node:events";
import { type Socket, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";

/**
 * A network between agents, or clients, and server that misbehaves on demand. What it does to bytes (delay, split,
 * freeze) applies to everything that passes; what it does to connections (cut, half-open, drop) applies to those that
 * are open.
 */
export interface Proxy {
  /** 0 if it listens on a unix socket. */
  readonly port: number;
  /** Where the server is now, a port or a unix socket; undefined: connections are refused. */
  target: number | string | undefined;
  /** Every piece waits this long, in order. */
  delayMs: number;
  /** Pieces become crumbs. */
  split: boolean;
  /** Nothing passes, nothing closes: what was sent waits. */
  frozen: boolean;
  cut(): void;
  /** Closes one side; the other does not hear of it, nor of anything else. */
  halfOpen(closed: "agents" | "server"): void;
  /** The next piece of each connection vanishes. */
  drop(): void;
  close(): void;
}

interface Pair {
  readonly agent: Socket;
  readonly server: Socket;
  /** Pieces still to vanish. */
  drops: number;
  /** One side does not learn of the other's end. */
  severed: boolean;
}

/** How often a frozen connection checks whether it may continue. */
const LOOK_MS = 10;
const LARGEST_CRUMB = 400;

/** On its own port, or on a unix socket. */
export const createProxy = async (random: Random, at?: string): Promise<Proxy> => {
  const pairs = new Set<Pair>();
  let closed = false;

  const deliver = async (to: Socket, chunk: Buffer): Promise<void> => {
    for (let at = 0; at < chunk.length && !to.destroyed;) {
      const end = proxy.split ? Math.min(chunk.length, at + random.int(1, LARGEST_CRUMB)) : chunk.length;
      if (!to.write(chunk.subarray(at, end)))
        await new Promise<void>((resolve) => {
          to.once("drain", resolve);
          to.once("close", resolve);
        });
      at = end;
      if (at < chunk.length) await new Promise((resolve) => setImmediate(resolve));
    }
  };

  const carry = async (pair: Pair, from: Socket, to: Socket): Promise<void> => {
    let broken = false;
    try {
      for await (const chunk of from as AsyncIterable<Buffer>) {
        if (proxy.delayMs > 0) await sleep(proxy.delayMs);
        while (proxy.frozen && !closed && !from.destroyed) await sleep(LOOK_MS);
        if (pair.drops > 0) pair.drops -= 1;
        else await deliver(to, chunk);
      }
    } catch {
      broken = true;
    }
    while (proxy.frozen && !closed) await sleep(LOOK_MS);
    if (pair.severed) return;
    if (broken) to.destroy();
    else to.end();
  };

  const server = createServer((agent) => {
    agent.on("error", () => undefined);
    if (proxy.target === undefined) {
      agent.destroy();
      return;
    }
    const other =
      typeof proxy.target === "string"
        ? connect({ path: proxy.target })
        : connect({ port: proxy.target, host: "127.0.0.1" });
    other.on("error", () => undefined);
    for (const socket of [agent, other]) socket.setNoDelay(true);
    const pair: Pair = { agent, server: other, drops: 0, severed: false };
    pairs.add(pair);
    const gone = (): void => {
      if (agent.destroyed && other.destroyed) pairs.delete(pair);
    };
    agent.once("close", gone);
    other.once("close", gone);
    void carry(pair, agent, other);
    void carry(pair, other, agent);
  });
  if (at === undefined) server.listen(0, "127.0.0.1");
  else server.listen(at);
  await once(server, "listening");

  /** A unix socket has no reset. */
  const reset = (socket: Socket): void => {
    if (at === undefined) socket.resetAndDestroy();
    else socket.destroy();
  };

  const proxy: Proxy = {
    port: at === undefined ? (server.address() as { port: number }).port : 0,
    target: undefined,
    delayMs: 0,
    split: false,
    frozen: false,
    cut: () => {
      for (const pair of pairs) {
        reset(pair.agent);
        reset(pair.server);
      }
    },
    halfOpen: (side) => {
      for (const pair of pairs) {
        pair.severed = true;
        pair.drops = Number.MAX_SAFE_INTEGER;
        reset(side === "agents" ? pair.agent : pair.server);
      }
    },
    drop: () => {
      for (const pair of pairs) pair.drops += 1;
    },
    close: () => {
      closed = true;
      server.close();
      for (const pair of pairs) {
        pair.agent.destroy();
        pair.server.destroy();
      }
    },
  };
  return proxy;
};
