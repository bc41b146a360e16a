import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { type Socket, connect as connectTcp } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { dialServer, joinAs } from "./protocol-peer.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** What strangers without a token may cost a real server. */

const MB = 1e6;
/** Node's young generation grows with any work, strangers or not: here it cannot. */
const env = { NODE_OPTIONS: "--max-semi-space-size=1" };

let slipway: SlipwayHome;
let port: number;
let pid: number;

beforeAll(async () => {
  slipway = await createHome();
  await slipway.run(["up"], { env });
  ({ port, pid } = (await readEndpoint(slipway.home))!);
});

afterAll(() => slipway.cleanup());

const statusOf = async (field: string): Promise<number> =>
  Number(new RegExp(`^${field}:\\s*(\\d+) kB`, "m").exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) * 1024;

/** From here on VmHWM is the server's peak since now. */
const forgetPeak = (): Promise<void> => writeFile(`/proc/${pid}/clear_refs`, "5");

const quiet = <S extends Socket>(socket: S): S => socket.on("error", () => undefined);

const tcp = async (): Promise<Socket> => {
  const socket = quiet(connectTcp({ port, host: "127.0.0.1" }));
  await once(socket, "connect");
  return socket;
};

const tls = async (protocol: string): Promise<Socket> => quiet(await dialServer(slipway.home, protocol));

const taken = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      socket.off("drain", go);
      socket.off("close", go);
      resolve();
    };
    socket.once("drain", go);
    socket.once("close", go);
  });

/** Writes as much as the server accepts, up to a size: it may hang up before. */
const stuff = async (socket: Socket, head: Buffer | string, size: number): Promise<void> => {
  socket.write(head);
  const piece = Buffer.alloc(64 * 1024, 0x78);
  for (let sent = 0; sent < size && !socket.destroyed; sent += piece.length)
    if (!socket.write(piece.subarray(0, Math.min(piece.length, size - sent)))) await taken(socket);
};

const header = (length: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  return bytes;
};

const LONG_FRAME = 16 * 1024 * 1024;
const KINDS: Readonly<Record<string, () => Promise<Socket>>> = {
  "says nothing": tcp,
  "half a handshake": async () => {
    const socket = await tcp();
    await stuff(socket, Buffer.from([0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]), 16_000);
    return socket;
  },
  "a hello that never begins": () => tls("slipway-agent"),
  "a hello of 16 MB that never ends": async () => {
    const socket = await tls("slipway-agent");
    await stuff(socket, header(LONG_FRAME), LONG_FRAME - 1);
    return socket;
  },
  "a hello in single bytes": async () => {
    const socket = await tls("slipway-agent");
    socket.setNoDelay(true);
    socket.write(header(8000));
    for (let i = 0; i < 500; i += 1) socket.write("x");
    await stuff(socket, "", 7000);
    return socket;
  },
  "a request that never begins": () => tls("http/1.1"),
  "a head that never ends": async () => {
    const socket = await tls("http/1.1");
    await stuff(socket, "GET /api/v1/server HTTP/1.1\r\nhost: x\r\nx: ", 8000);
    return socket;
  },
  "a head of nothing but headers": async () => {
    const socket = await tls("http/1.1");
    socket.write(`GET /api/v1/server HTTP/1.1\r\nhost: x\r\n${"a:\r\n".repeat(2000)}`);
    return socket;
  },
  "a body before anybody asked who it is": async () => {
    const socket = await tls("http/1.1");
    await stuff(
      socket,
      "POST /api/v1/launches HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 300000000\r\n\r\n",
      4_000_000,
    );
    return socket;
  },
};
const ALL = Object.values(KINDS);

/** This many of all kinds at once; resolves when each has done its worst. */
const come = async (count: number, kinds = ALL): Promise<Socket[]> => {
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at += 50)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(50, count - at) }, (_, i) => kinds[(at + i) % kinds.length]!()),
      )),
    );
  return sockets;
};

const leave = async (sockets: readonly Socket[]): Promise<void> => {
  await Promise.all(
    sockets.map(async (socket) => {
      if (socket.closed) return;
      const closed = once(socket, "close");
      socket.destroy();
      await closed;
    }),
  );
};

describe("strangers at the port", () => {
  it("rule 11: 100 of any kind cost at most 20 MB, 1,000 at most 100 MB", async () => {
    // what any work costs once: code, caches, the first pages of every heap
    for (let round = 0; round < 4; round += 1) await leave(await come(27));
    for (const [count, most] of [
      [100, 20 * MB],
      [1000, 100 * MB],
    ] as const) {
      const before = await statusOf("VmRSS");
      await forgetPeak();
      const sockets = await come(count);
      const cost = (await statusOf("VmHWM")) - before;
      await leave(sockets);
      expect(cost, `${count} strangers cost ${(cost / MB).toFixed(1)} MB`).toBeLessThanOrEqual(most);
    }
  });

  it("a launch of 300 MB, of one who has a token, costs no more than what is read of it", async () => {
    const token = (await readFile(join(slipway.home, "keys", "client.token"), "utf8")).trim();
    const before = await statusOf("VmRSS");
    await forgetPeak();
    const socket = await tls("http/1.1");
    const answer = once(socket, "data");
    await stuff(
      socket,
      `POST /api/v1/launches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${(300_000_000).toString(16)}\r\n`,
      300_000_000,
    );
    expect(String((await answer)[0])).toMatch(/^HTTP\/1.1 413 /);
    const cost = (await statusOf("VmHWM")) - before;
    await leave([socket]);
    expect(cost, `it cost ${(cost / MB).toFixed(1)} MB`).toBeLessThanOrEqual(200 * MB);
  });

  it("above 1,000 the oldest goes, and nobody who has shown a token", async () => {
    const token = (await readFile(join(slipway.home, "keys", "client.token"), "utf8")).trim();
    const client = await tls("http/1.1");
    const asked = async (): Promise<string> => {
      client.write(`GET /api/v1/server HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
      return String((await once(client, "data"))[0]);
    };
    expect(await asked()).toMatch(/^HTTP\/1.1 200 /);
    const agent = await joinAs(slipway.home);
    await agent.saw("welcome");
    const first = await tcp();
    const second = await tcp();
    // looked at in that moment: on a busy machine those who say nothing may be closed for that before all have come
    const stayed = once(first, "close").then(() => !second.destroyed);
    const others: Socket[] = [];
    // 1,000, and one for the agent
    for (let batch = 0; batch < 10; batch++) others.push(...(await Promise.all(Array.from({ length: 99 }, tcp))));
    others.push(...(await Promise.all(Array.from({ length: 9 }, tcp))));
    expect(first.destroyed).toBe(false);
    others.push(await tcp());
    expect(await stayed).toBe(true);
    expect(await asked()).toMatch(/^HTTP\/1.1 200 /);
    agent.channel.send({ t: "ping" });
    await agent.saw("ping");
    agent.channel.send({ t: "bye", reason: "test" });
    await agent.closed;
    await leave([client, first, second, ...others]);
  });
});
