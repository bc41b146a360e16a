import { randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { type Channel, createChannel } from "../protocol/frames.ts";
import { readEndpoint } from "../protocol/endpoint.ts";
import { pinOf } from "../protocol/pin.ts";
import { AGENT_PROTOCOL } from "../protocol/version.ts";
import type { AgentMessage, Hello, ServerMessage } from "../protocol/messages.ts";

/**
 * The agent's way to its server. The endpoint file is read again before every try, so that a successor on another
 * host or port is found; all its addresses are tried in turn; tries are spread by jitter (rule 11). The server's key
 * is pinned, not its name (rule 16): nothing is sent before the key was seen.
 */

const CONNECT_MS = 5000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 1000;
/** Between two looks whether a heartbeat is due, or the server silent. */
const LOOK_MS = 1000;
/** A peer that says nothing for this many heartbeats is gone. */
const SILENT_HEARTBEATS = 4;

export interface ConnectionOptions {
  readonly home: string;
  readonly hello: () => Omit<Hello, "t" | "token">;
  readonly onMessage: (message: ServerMessage) => void;
  readonly onOpen: () => void;
  readonly onClose: (reason: string) => void;
  readonly log: (text: string) => void;
}

export interface Connection {
  send(message: AgentMessage): void;
  readonly open: boolean;
  readonly buffered: number;
  /** Gives up this server and looks for another. */
  drop(reason: string): void;
  /** Milliseconds since there was last a server. */
  lonelyMs(): number;
  /** Ends it for good. With a time, the server is given so long to hear the last words and close the connection itself. */
  stop(waitMs?: number): Promise<void>;
}

export const keepConnected = (options: ConnectionOptions): Connection => {
  let channel: Channel<AgentMessage> | undefined;
  let welcomed = false;
  let stopped = false;
  let wait = FIRST_WAIT_MS;
  let lonelySince = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let heartbeatMs = 5000;
  let lastProblem = "";
  let onGone = (): void => undefined;

  const later = (): void => {
    if (stopped) return;
    const jittered = wait / 2 + randomInt(Math.ceil(wait / 2) + 1);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    timer = setTimeout(() => void attempt(), jittered);
  };

  const problem = (text: string): void => {
    if (text !== lastProblem) options.log(text);
    lastProblem = text;
  };

  const tryAddress = (host: string, port: number, pin: string, token: string): Promise<boolean> =>
    new Promise((settle) => {
      const socket = connect({
        host,
        port,
        ALPNProtocols: [AGENT_PROTOCOL],
        rejectUnauthorized: false,
        minVersion: "TLSv1.3",
      });
      const refuse = (reason: string): void => {
        clearTimeout(limit);
        socket.destroy();
        problem(`${host}:${port}: ${reason}`);
        settle(false);
      };
      const limit = setTimeout(() => refuse("no answer"), CONNECT_MS);
      const failed = (error: Error): void => refuse(error.message);
      socket.once("error", failed);
      socket.once("secureConnect", () => {
        clearTimeout(limit);
        socket.off("error", failed);
        if (pinOf(socket) !== pin) return refuse("the server's key is not the one of this home");
        channel = createChannel<ServerMessage, AgentMessage>(
          socket,
          (message) => {
            if (message.t === "welcome") {
              welcomed = true;
              wait = FIRST_WAIT_MS;
              lastProblem = "";
              heartbeatMs = message.heartbeatMs;
            }
            if (message.t === "refused") problem(`the server refused: ${message.message}`);
            options.onMessage(message);
          },
          (reason) => {
            channel = undefined;
            onGone();
            lonelySince = performance.now();
            if (welcomed) options.onClose(reason);
            welcomed = false;
            later();
          },
        );
        channel.trust();
        channel.send({ t: "hello", token, ...options.hello() });
        options.onOpen();
        settle(true);
      });
    });

  const attempt = async (): Promise<void> => {
    try {
      const endpoint = await readEndpoint(options.home);
      if (endpoint === undefined) problem(`no server has its endpoint in ${options.home}`);
      else {
        const token = (await readFile(join(options.home, "keys", "agent.token"), "utf8")).trim();
        // on the server's own host the loop-back address comes first
        for (const address of endpoint.addresses)
          if (!stopped && (await tryAddress(address, endpoint.port, endpoint.keyPin, token))) return;
      }
    } catch (error) {
      problem((error as Error).message);
    }
    later();
  };

  let beaten = performance.now();
  const beat = setInterval(() => {
    if (channel === undefined) return;
    const now = performance.now();
    if (channel.silence() > SILENT_HEARTBEATS * heartbeatMs) channel.destroy("the server is silent");
    else if (now - beaten >= heartbeatMs) {
      beaten = now;
      channel.send({ t: "ping" });
    }
  }, LOOK_MS);
  void attempt();

  return {
    send: (message) => channel?.send(message),
    get open() {
      return welcomed;
    },
    get buffered() {
      return channel?.buffered ?? 0;
    },
    drop: (reason) => channel?.destroy(reason),
    lonelyMs: () => (channel === undefined ? performance.now() - lonelySince : 0),
    stop: async (waitMs = 0) => {
      stopped = true;
      clearInterval(beat);
      clearTimeout(timer);
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
