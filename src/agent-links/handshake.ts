import type { Duplex } from "node:stream";
import { type Channel, createChannel } from "../protocol/frames.ts";
import type { AgentMessage, Hello, ServerMessage } from "../protocol/messages.ts";
import { sameSecret, showsToken } from "../protocol/token.ts";
import { PROTOCOL_VERSION, judgeVersion } from "../protocol/version.ts";
import { checkAgentMessage } from "./check-message.ts";
import type { AgentLink } from "./link.ts";

/** Connections that have not said hello yet, and what a hello must show: the token, and a version that we speak. */

/** How long a connection may take to say hello before it is closed. */
const HELLO_MS = 10_000;

export interface HandshakeOptions {
  readonly token: string;
  readonly log: (text: string, facts?: object) => void;
  /** The agent showed its token and speaks this version or (`previous`) the one before. */
  readonly onHello: (hello: Hello, channel: Channel<ServerMessage>, previous: boolean) => AgentLink;
  /** A message from a welcomed agent. */
  readonly onMessage: (link: AgentLink, message: AgentMessage) => void;
  /** The connection of a welcomed agent ended. */
  readonly onEnd: (link: AgentLink, channel: Channel<ServerMessage>, reason: string) => void;
}

export interface Handshakes {
  /** Calls `onKnown` when the agent has shown its token. */
  accept(socket: Duplex, onKnown?: () => void): void;
  /** While held, nothing is read from any connection. */
  hold(held: boolean): void;
  /** Ends connections that never said hello. */
  close(): void;
}

export const createHandshakes = (options: HandshakeOptions): Handshakes => {
  const { token, log } = options;
  const unknown = new Set<Channel<ServerMessage>>();
  const sockets = new Set<Duplex>();
  let held = false;

  /** A stranger's nonsense is not worth logging; nonsense from someone with the token is. */
  const understandStranger = (raw: unknown): AgentMessage => {
    try {
      return checkAgentMessage(raw);
    } catch (error) {
      const { token: shown } = (raw ?? {}) as { token?: unknown };
      if (typeof shown === "string" && sameSecret(shown, token))
        log(`an agent was refused: ${(error as Error).message}`);
      throw error;
    }
  };

  const refuse = (channel: Channel<ServerMessage>, host: string, code: string, text: string): void => {
    log(`an agent on ${host} was refused: ${text}`);
    channel.send({ t: "refused", code, message: text, transient: false });
    setImmediate(() => channel.close());
  };

  const accept = (socket: Duplex, onKnown?: () => void): void => {
    let link: AgentLink | undefined;
    sockets.add(socket);
    if (held) socket.pause();

    const meet = (hello: AgentMessage): void => {
      if (hello.t !== "hello") throw new RangeError("the first message must be a hello");
      if (!sameSecret(hello.token, token))
        return refuse(channel, hello.host, "unauthorized", "the token was not accepted");
      const verdict = judgeVersion(hello.version);
      if (verdict === "stranger") {
        const theirs = `protocol version ${hello.version} (Slipway ${hello.slipway})`;
        const text = `${theirs} is not understood here; this server speaks ${PROTOCOL_VERSION}`;
        return refuse(channel, hello.host, "version-mismatch", text);
      }
      unknown.delete(channel);
      clearTimeout(limit);
      channel.trust();
      onKnown?.();
      link = options.onHello(hello, channel, verdict === "previous");
      log(`agent ${link.id} on ${hello.host} connected`, { pid: hello.pid });
    };

    const channel: Channel<ServerMessage> = createChannel<unknown, ServerMessage>(
      socket,
      (raw) => {
        if (link === undefined) meet(understandStranger(raw));
        else options.onMessage(link, checkAgentMessage(raw));
      },
      (reason) => {
        unknown.delete(channel);
        sockets.delete(socket);
        clearTimeout(limit);
        if (link !== undefined) options.onEnd(link, channel, reason);
      },
      (head) => showsToken(head, token),
    );
    const limit = setTimeout(() => channel.destroy("no hello"), HELLO_MS);
    unknown.add(channel);
  };

  return {
    accept,
    hold: (hold) => {
      held = hold;
      for (const socket of sockets)
        if (hold) socket.pause();
        else socket.resume();
    },
    close: () => {
      for (const channel of unknown) channel.destroy("the server is stopping");
    },
  };
};
