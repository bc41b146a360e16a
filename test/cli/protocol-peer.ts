import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TLSSocket, connect, createServer } from "node:tls";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import type { PackedColumns } from "../../src/core/columns.ts";
import { FRACTION } from "../../src/core/resources.ts";
import { type Channel, createChannel } from "../../src/protocol/frames.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import type { AgentMessage, Hello, ServerMessage } from "../../src/protocol/messages.ts";
import { PROTOCOL_VERSION } from "../../src/protocol/version.ts";

/** The other side of the agents' protocol, played by a test: an agent for a real server, or a server for a real agent. */

export interface Peer<In, Out> {
  readonly channel: Channel<Out>;
  readonly received: In[];
  /** Why the connection ended. */
  readonly closed: Promise<string>;
  /** Resolves with the first message of that kind, past or future; rejects when the connection ends first. */
  saw<K extends (In extends { t: infer T } ? T : never)>(kind: K): Promise<Extract<In, { t: K }>>;
}

/** Listens on a connection of any kind: TLS, or a pair of streams within one process. */
export const createPeer = <In extends { t: string }, Out>(socket: Duplex): Peer<In, Out> => {
  const received: In[] = [];
  const waiting = new Set<() => void>();
  let reason: string | undefined;
  let settle: (reason: string) => void = () => undefined;
  const closed = new Promise<string>((resolve) => {
    settle = resolve;
  });
  const wake = (): void => {
    for (const look of waiting) look();
  };
  const channel = createChannel<In, Out>(
    socket,
    (message) => {
      received.push(message);
      wake();
    },
    (why) => {
      reason = why;
      settle(why);
      wake();
    },
  );
  return {
    channel,
    received,
    closed,
    saw: (kind) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = received.find((message) => message.t === kind);
          if (found !== undefined) resolve(found as never);
          else if (reason === undefined) return;
          else reject(new Error(`closed (${reason}) before ${String(kind)}`));
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      }),
  };
};

export const dialServer = async (home: string, protocol = "slipway-agent"): Promise<TLSSocket> => {
  const endpoint = (await readEndpoint(home))!;
  const socket = connect({
    host: "127.0.0.1",
    port: endpoint.port,
    ALPNProtocols: [protocol],
    rejectUnauthorized: false,
  });
  await once(socket, "secureConnect");
  return socket;
};

/** The first message of a new agent with four cores. */
export const helloOf = (change: Partial<Hello>): Hello => ({
  t: "hello",
  version: PROTOCOL_VERSION,
  slipway: "test",
  token: "",
  uuid: randomUUID(),
  pilot: 0,
  host: "test-host",
  pid: process.pid,
  resources: { cpus: 4 * FRACTION },
  output: "",
  epoch: 0,
  seq: 0,
  held: [],
  parts: [],
  ...change,
});

/** Connects as an agent. `change` alters the hello. */
export const joinAs = async (home: string, change: Partial<Hello> = {}): Promise<Peer<ServerMessage, AgentMessage>> => {
  const peer = createPeer<ServerMessage, AgentMessage>(await dialServer(home));
  peer.channel.trust();
  const token = (await readFile(join(home, "keys", "agent.token"), "utf8")).trim();
  peer.channel.send(helloOf({ token, output: join(home, "output", "none"), ...change }));
  return peer;
};

/** A server in place of the real one, with its key; it answers nothing by itself. */
export const pretendServer = async (
  home: string,
  onAgent: (peer: Peer<AgentMessage, ServerMessage>) => void,
): Promise<{ port: number; close(): void }> => {
  const [key, cert] = await Promise.all(["server.key", "server.crt"].map((name) => readFile(join(home, "keys", name))));
  const server = createServer({ key: key!, cert: cert!, ALPNProtocols: ["slipway-agent"] }, (socket) =>
    onAgent(createPeer(socket)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as { port: number }).port, close: () => server.close() };
};

/** Results as an agent packs them: of one task that ended well, unless changed. */
export const endedPart = (run: number, change: object = {}): PackedColumns => ({
  run,
  n: 1,
  from: 0,
  attempt: 1,
  ending: 0,
  code: 0,
  started: 1e12,
  finished: 1e12 + 5,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
  ...change,
});
