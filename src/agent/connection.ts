import { randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { type Channel, createChannel } from "../protocol/frames.ts";
import { type Endpoint, readEndpointFile } from "../protocol/endpoint.ts";
import { pinOf } from "../protocol/pin.ts";
import { AGENT_PROTOCOL } from "../protocol/version.ts";
import type { AgentMessage, Hello, ServerMessage } from "../protocol/messages.ts";

/**
 * The agent's way to its server. The endpoint file is read again before every try, so that a successor on another
 * host or port is found; all its addresses are tried in turn, the next one while the last is still silent, and the
 * first that shows the right key is taken; tries are spread by jitter (rule 11). The server's key is pinned, not its
 * name (rule 16): nothing is sent before the key was seen. When none answers, the log says so once, with every address
 * and what was wrong with it.
 */

const CONNECT_MS = 5000;
/** A silent address holds up the next one no longer than this. */
const NEXT_ADDRESS_MS = 300;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 1000;
/** Between two looks whether a heartbeat is due, or the server silent. */
const LOOK_MS = 1000;
/** A peer that says nothing for this many heartbeats is gone. */
const SILENT_HEARTBEATS = 4;

export interface ConnectionOptions {
  /** Where the server says how it is reached, and what agents show it. */
  readonly endpointFile: string;
  readonly tokenFile: string;
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

  /** Talks over a connection whose key was seen. */
  const open = (socket: TLSSocket, token: string): void => {
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
  };

  /** A connection that showed the right key, or what is wrong with this address. */
  const dial = (host: string, port: number, pin: string, signal: AbortSignal): Promise<TLSSocket | string> =>
    new Promise((settle) => {
      const socket = connect({
        host,
        port,
        ALPNProtocols: [AGENT_PROTOCOL],
        rejectUnauthorized: false,
        minVersion: "TLSv1.3",
      });
      let taken = false;
      const refuse = (reason: string): void => {
        if (taken) return;
        clearTimeout(limit);
        socket.destroy();
        settle(reason);
      };
      const limit = setTimeout(() => refuse(`no answer within ${CONNECT_MS / 1000} s`), CONNECT_MS);
      socket.on("error", (error: NodeJS.ErrnoException) => refuse(error.code ?? error.message));
      signal.addEventListener("abort", () => refuse("another address was taken"), { once: true });
      socket.once("secureConnect", () => {
        clearTimeout(limit);
        if (pinOf(socket) !== pin) return refuse("the server there has another key than this home's");
        taken = true;
        settle(socket);
      });
    });

  /** Tries each address, and the next when this one is silent for a moment; the first connection wins. */
  const dialAny = async (endpoint: Endpoint): Promise<TLSSocket | undefined> => {
    const problems: string[] = [];
    const losers = new AbortController();
    let winner: TLSSocket | undefined;
    const tries = new Set<Promise<void>>();
    for (const host of new Set(endpoint.addresses)) {
      const attempt = dial(host, endpoint.port, endpoint.keyPin, losers.signal).then((got) => {
        tries.delete(attempt);
        if (typeof got === "string") problems.push(`${host}:${endpoint.port} (${got})`);
        else if (winner === undefined) winner = got;
        else got.destroy();
      });
      tries.add(attempt);
      await Promise.race([attempt, sleep(NEXT_ADDRESS_MS)]);
      if (winner !== undefined || stopped) break;
    }
    while (winner === undefined && tries.size > 0) await Promise.race(tries);
    losers.abort();
    if (winner === undefined)
      problem(
        `${hostname()} cannot reach the server of ${options.endpointFile} (on ${endpoint.host}); tried ${problems.join(", ")}. ` +
          "Open that port between the machines, or start the server with `slipway up --host ADDRESS` that nodes can reach",
      );
    return winner;
  };

  const attempt = async (): Promise<void> => {
    try {
      const endpoint = await readEndpointFile(options.endpointFile);
      if (endpoint === undefined) problem(`no server runs: there is no endpoint in ${options.endpointFile}`);
      else {
        const token = (await readFile(options.tokenFile, "utf8")).trim();
        const socket = await dialAny(endpoint);
        if (socket !== undefined && stopped) socket.destroy();
        else if (socket !== undefined) return open(socket, token);
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
