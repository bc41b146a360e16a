import { randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { Socket } from "node:net";
import { type Channel, createChannel } from "../protocol/frames.ts";
import { type Endpoint, readEndpointFile } from "../protocol/endpoint.ts";
import type { AgentMessage, Hello, ServerMessage } from "../protocol/messages.ts";
import { dial } from "./dial.ts";

/**
 * The agent's connection to its server. It reads the endpoint file again before every try, so that it finds a successor
 * on another host or port; jitter spreads the tries (rule 11). When no address answers, the log says so once, with
 * every address and its error.
 */

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 1000;
/** How often to check whether a heartbeat is due or the server is silent. */
const LOOK_MS = 1000;
/** A peer that says nothing for this many heartbeats is gone. */
const SILENT_HEARTBEATS = 4;
/** A server tells a longer one where it has thousands of agents: then all of them also take longer to come back to a new one. */
const USUAL_HEARTBEAT_MS = 5000;

export interface ConnectionOptions {
  /** Where the server says how to reach it, and what agents must show it. */
  readonly endpointFile: string;
  readonly tokenFile: string;
  readonly log: (text: string) => void;
}

/** Who talks over the connection. */
export interface ConnectionListener {
  hello(): Omit<Hello, "t" | "token">;
  received(message: ServerMessage): void;
  /** A server that had welcomed us is gone. */
  lost(reason: string): void;
}

export interface Connection {
  /** Looks for a server, and for another one whenever it loses it. Nothing is sent before. */
  connect(listener: ConnectionListener): void;
  send(message: AgentMessage): void;
  /** A server has welcomed us. */
  readonly open: boolean;
  /** Gives up this server and looks for another. */
  drop(reason: string): void;
  /** Milliseconds since a server last said something; 0 while there is one. */
  lonelyMs(): number;
  /** Ends it for good. With a time, the server has that long to hear the last words and close the connection itself. */
  stop(waitMs?: number): Promise<void>;
}

const unreachable = (file: string, { host }: Endpoint, problems: readonly string[]): string =>
  `${hostname()} cannot reach the server of ${file} (on ${host}); tried ${problems.join(", ")}. ` +
  "Open that port between the machines, or start the server with `slipway up --host ADDRESS`, an address that nodes can reach";

/** Sends a heartbeat when one is due, and ends a channel whose server is silent. */
const createHeartbeat = () => {
  let everyMs = USUAL_HEARTBEAT_MS;
  let last = performance.now();
  return {
    get everyMs() {
      return everyMs;
    },
    every: (ms: number): void => {
      everyMs = ms;
    },
    /** The server has just heard of us: the next one is due a full time later. */
    heard: (): void => {
      last = performance.now();
    },
    look: (channel: Channel<AgentMessage> | undefined): void => {
      if (channel === undefined) return;
      const now = performance.now();
      if (channel.silence() > SILENT_HEARTBEATS * everyMs) channel.destroy("the server is silent");
      else if (now - last >= everyMs) {
        last = now;
        channel.send({ t: "ping" });
      }
    },
  };
};

/** Measures how long no server has said anything. A connection alone does not count: a server that stands still accepts it. */
const createCompany = () => {
  let since = performance.now();
  let isThere = false;
  return {
    heard: (): void => {
      isThere = true;
    },
    gone: (): void => {
      if (isThere) since = performance.now();
      isThere = false;
    },
    lonelyMs: (): number => (isThere ? 0 : performance.now() - since),
  };
};

export const createConnection = (options: ConnectionOptions): Connection => {
  const heartbeat = createHeartbeat();
  const company = createCompany();
  let channel: Channel<AgentMessage> | undefined;
  let welcomed = false;
  let stopped = false;
  /** How often it was tried without a welcome since the last one. */
  let tries = 0;
  let retry: NodeJS.Timeout | undefined;
  let looks: NodeJS.Timeout | undefined;
  let lastProblem = "";
  let onGone = (): void => undefined;

  const problem = (text: string): void => {
    if (text !== lastProblem) options.log(text);
    lastProblem = text;
  };

  const wasWelcomed = (heartbeatMs: number): void => {
    welcomed = true;
    tries = 0;
    lastProblem = "";
    heartbeat.every(heartbeatMs);
  };

  /** Settles when the server is gone. */
  const talk = (socket: Socket, token: string, listener: ConnectionListener): Promise<void> =>
    new Promise((resolve) => {
      channel = createChannel<ServerMessage, AgentMessage>(
        socket,
        (message) => {
          company.heard();
          if (message.t === "welcome") wasWelcomed(message.heartbeatMs);
          else if (message.t === "ping" && message.heartbeatMs !== undefined) heartbeat.every(message.heartbeatMs);
          if (message.t === "refused") problem(`the server refused: ${message.message}`);
          listener.received(message);
        },
        (reason) => {
          channel = undefined;
          onGone();
          company.gone();
          if (welcomed) listener.lost(reason);
          welcomed = false;
          resolve();
        },
      );
      channel.trust();
      channel.send({ t: "hello", token, ...listener.hello() });
      // one of thousands that come back would otherwise ask at once, on top of its hello
      heartbeat.heard();
    });

  /** Finds a server and talks to it until it is gone. */
  const visit = async (listener: ConnectionListener): Promise<void> => {
    const endpoint = await readEndpointFile(options.endpointFile);
    if (endpoint === undefined) return problem(`no server runs: there is no endpoint in ${options.endpointFile}`);
    const found = await dial(endpoint, () => stopped, {
      connectMs: heartbeat.everyMs,
      answerMs: SILENT_HEARTBEATS * heartbeat.everyMs,
    });
    if (!("destroy" in found)) return problem(unreachable(options.endpointFile, endpoint, found));
    // read only now: while no server answers, thousands of agents would read it from one file system again and again
    const token = await readFile(options.tokenFile, "utf8").catch((error: unknown) => {
      found.destroy();
      throw error;
    });
    // the server may have closed the connection while we read the token
    if (stopped || found.destroyed) found.destroy();
    else await talk(found, token.trim(), listener);
  };

  const pause = (): Promise<void> => {
    const wait = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
    tries += 1;
    // one of thousands takes its turn: all at once would wait for each other, give up and begin again
    const turn = randomInt(Math.max(0, heartbeat.everyMs - USUAL_HEARTBEAT_MS) + 1);
    const jittered = turn + wait / 2 + randomInt(Math.ceil(wait / 2) + 1);
    return new Promise((resolve) => {
      retry = setTimeout(resolve, jittered);
    });
  };

  return {
    connect: (listener) => {
      looks = setInterval(() => heartbeat.look(channel), LOOK_MS);
      void (async () => {
        while (!stopped) {
          try {
            await visit(listener);
          } catch (error) {
            problem((error as Error).message);
            channel?.destroy((error as Error).message);
          }
          if (!stopped) await pause();
        }
      })();
    },
    send: (message) => channel?.send(message),
    get open() {
      return welcomed;
    },
    drop: (reason) => channel?.destroy(reason),
    lonelyMs: company.lonelyMs,
    stop: async (waitMs = 0) => {
      stopped = true;
      clearInterval(looks);
      clearTimeout(retry);
      if (waitMs > 0 && channel !== undefined)
        await new Promise<void>((resolve) => {
          const limit = setTimeout(resolve, waitMs);
          onGone = () => {
            clearTimeout(limit);
            resolve();
          };
        });
      channel?.close();
    },
  };
};
