import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, type Server, createServer as createPlain } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { type TLSSocket, createServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Connection, createConnection } from "../../../src/agent/connection.ts";
import { makeCertificate, makeKey, pinOf } from "../../../src/home/certificate.ts";
import { createChannel } from "../../../src/protocol/frames.ts";
import type { AgentMessage, ServerMessage } from "../../../src/protocol/messages.ts";
import { AGENT_PROTOCOL } from "../../../src/protocol/version.ts";

/** How often a server says agents should be heard, unless it has thousands of them. */
const USUAL_MS = 5000;
const AGENTS = 20;

let root: string;
let server: Server;
/** When each hello came. */
let hellos: number[] = [];
let sockets: TLSSocket[] = [];
let welcomed: () => void = () => undefined;
let heartbeatMs = USUAL_MS;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "slipway-connection-"));
  const key = await makeKey();
  const cert = await makeCertificate(key);
  server = createServer({ key, cert, ALPNProtocols: [AGENT_PROTOCOL], minVersion: "TLSv1.3" }, (socket) => {
    sockets.push(socket);
    const channel = createChannel<AgentMessage, ServerMessage>(
      socket,
      (message) => {
        if (message.t !== "hello") return;
        hellos.push(performance.now());
        channel.send({ t: "welcome", heartbeatMs } as ServerMessage);
        welcomed();
      },
      () => undefined,
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const endpoint = { addresses: ["127.0.0.1"], port, socket: "", keyPin: pinOf(key), host: "here", epoch: 1 };
  await writeFile(join(root, "endpoint.json"), JSON.stringify(endpoint));
  await writeFile(join(root, "token"), "t".repeat(43));
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  await rm(root, { recursive: true, force: true });
});

/** Resolves when so many have come. */
const come = async (count: number): Promise<void> => {
  while (hellos.length < count)
    await new Promise<void>((resolve) => {
      welcomed = resolve;
    });
};

/** For how long agents came back after all were cut off, from the first to the last, when they had been told this heartbeat. */
const comingBack = async (ms: number): Promise<number> => {
  heartbeatMs = ms;
  [hellos, sockets] = [[], []];
  const problems: string[] = [];
  const agents: Connection[] = Array.from({ length: AGENTS }, () =>
    createConnection({
      endpointFile: join(root, "endpoint.json"),
      tokenFile: join(root, "token"),
      log: (text) => void problems.push(text),
    }),
  );
  let away = 0;
  const told = new Promise<void>((resolve) => {
    let welcomes = 0;
    for (const agent of agents)
      agent.connect({
        hello: () => ({ uuid: "u", epoch: 0, seq: 0, held: [] }) as never,
        received: () => {
          welcomes += 1;
          if (welcomes === AGENTS) resolve();
        },
        lost: () => void (away += 1),
      });
  });
  await told;
  hellos = [];
  for (const socket of sockets) socket.destroy();
  await come(AGENTS);
  expect([away, problems]).toEqual([AGENTS, []]);
  await Promise.all(agents.map((agent) => agent.stop()));
  for (const socket of sockets) socket.destroy();
  return hellos.at(-1)! - hellos[0]!;
};

describe("an agent without a server", () => {
  it("is lonely while one takes its connection and says nothing, as one that stands still does", async () => {
    const agentSocket = join(root, "agents.sock");
    const frozen = createPlain().listen(agentSocket);
    await once(frozen, "listening");
    const endpoint = { addresses: [], port: 1, socket: "", keyPin: "", host: hostname(), epoch: 1, agentSocket };
    const endpointFile = join(root, "frozen.json");
    await writeFile(endpointFile, JSON.stringify(endpoint));
    const agent = createConnection({ endpointFile, tokenFile: join(root, "token"), log: () => undefined });
    const came = once(frozen, "connection");
    const listener = { received: () => undefined, lost: () => undefined };
    agent.connect({ ...listener, hello: () => ({ uuid: "u", epoch: 0, seq: 0, held: [] }) as never });
    const [socket] = (await came) as [TLSSocket];
    await once(socket, "data");
    const before = agent.lonelyMs();
    expect(before).toBeGreaterThan(0);
    socket.destroy();
    await once(frozen, "connection");
    expect(agent.lonelyMs()).toBeGreaterThan(before);
    await agent.stop();
    await new Promise((resolve) => frozen.close(resolve));
  });
});

describe("agents that come back", () => {
  it("take turns where there are thousands: they come over as long a time as their heartbeat is longer than usual", async () => {
    // 20 draws from 900 ms lie this close together once in more than a million times
    expect(await comingBack(USUAL_MS + 900)).toBeGreaterThan(300);
  });
});
