import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type Socket, connect as connectTcp } from "node:net";
import { readEndpoint } from "../../../src/protocol/endpoint.ts";
import { dialServer, endedPart, joinAs } from "../../cli/protocol-peer.ts";
import { until } from "../../until.ts";
import type { World } from "../world.ts";
import { type Scenario, expect, fleetOf } from "./scenario.ts";

/** Strangers at the door, while others work. */

const residentOf = async (pid: number): Promise<number> =>
  Number(/^VmRSS:\s*(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) * 1024;

/** Two gigabytes, little-endian, as a frame's length. */
const HUGE = Buffer.from([0, 0, 0, 0x80]);
const DRIP_MS = 300;
const PATIENCE_MS = 90_000;

/** Sends bytes one by one until the server has had enough. Resolves with what is wrong, if that never happens. */
const drip = async (what: string, socket: Socket, bytes: Buffer): Promise<string | undefined> => {
  let closed = false;
  socket.on("error", () => undefined);
  socket.on("close", () => (closed = true));
  let at = 0;
  const timer = setInterval(() => {
    if (at < bytes.length && !socket.destroyed) socket.write(bytes.subarray(at, ++at));
  }, DRIP_MS);
  try {
    await until(`${what} to be closed`, () => closed, PATIENCE_MS);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    clearInterval(timer);
    socket.destroy();
  }
};

const slowOnes = async (world: World): Promise<Promise<string | undefined>[]> => {
  const { port, socket } = (await readEndpoint(world.home))!;
  const headers = Buffer.from(`GET / HTTP/1.1\r\nx: ${"y".repeat(500)}`);
  const slow: Promise<string | undefined>[] = [];
  for (let i = 0; i < 10; i += 1) {
    slow.push(
      drip(
        "a handshake that never ends",
        connectTcp({ port, host: "127.0.0.1" }),
        Buffer.concat([Buffer.from([0x16, 3, 1, 2, 0, 1]), Buffer.alloc(500)]),
      ),
      drip("a connection that says nothing", connectTcp({ port, host: "127.0.0.1" }), Buffer.alloc(0)),
      drip(
        "a hello that never ends",
        await dialServer(world.home),
        Buffer.concat([Buffer.from([100, 0, 0, 0]), Buffer.alloc(50)]),
      ),
      drip("headers that never end", await dialServer(world.home, "http/1.1"), headers),
      drip("headers that never begin", await dialServer(world.home, "http/1.1"), Buffer.alloc(0)),
      drip("headers that never end at the socket", connectTcp({ path: socket }), headers),
    );
  }
  return slow;
};

export const strangerScenarios: readonly Scenario[] = [
  {
    name: "wrong tokens, wrong versions, garbage, 2 GB headers and slow-loris connections disturb nobody",
    waits: true,
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(2) });
      const { world } = play;
      await world.up();
      const [server] = world.serverPids();
      await play.submit({ tasks: 400, ms: 20 });
      await until("the work to begin", async () => (await world.executions()) > 10);
      const before = await residentOf(server!);
      const slow = await slowOnes(world);
      for (let round = 0; round < 20; round += 1) {
        const token = await joinAs(world.home, { token: randomBytes(32).toString("base64url") });
        expect((await token.saw("refused")).code === "unauthorized", "a wrong token was not refused");
        const version = await joinAs(world.home, { version: 99 + round });
        expect((await version.saw("refused")).code === "version-mismatch", "a wrong version was not refused");
        await Promise.all([token.closed, version.closed]);
        for (const bytes of [randomBytes(20_000), Buffer.concat([HUGE, randomBytes(5000)]), HUGE]) {
          const socket = await dialServer(world.home);
          socket.on("error", () => undefined);
          socket.write(bytes);
          await once(socket, "close");
        }
        const { port } = (await readEndpoint(world.home))!;
        const plain = connectTcp({ port, host: "127.0.0.1" });
        plain.on("error", () => undefined);
        plain.write(randomBytes(3000));
        await once(plain, "close");
      }
      await play.settle();
      const patient = new Set((await Promise.all(slow)).filter((problem) => problem !== undefined));
      expect(patient.size === 0, [...patient].join("; "));
      expect(world.serverPids()[0] === server, "the server is another one");
      const grown = (await residentOf(server!)) - before;
      expect(grown < 300 * 2 ** 20, `strangers cost the server ${Math.round(grown / 2 ** 20)} MB`);
      await play.submit();
      await play.settle();
    },
  },
  {
    name: "a peer that claims what is not its own changes nothing",
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(1) });
      const { world } = play;
      await world.up();
      const first = await play.submit({ tasks: 100, ms: 20 });
      await until("the work to begin", async () => (await world.executions()) > 5);
      const liar = await joinAs(world.home, {
        resources: {},
        held: [{ run: first.id!, rows: Array.from({ length: 100 }, (_, i) => i), attempts: Array(100).fill(1) }],
      });
      const { drop } = await liar.saw("welcome");
      expect(drop.length === 1 && drop[0]!.rows.length === 100, "somebody else's tasks were left to a liar");
      liar.channel.send({ t: "returned", parts: [{ run: first.id!, ranges: [0, 100] }] });
      liar.channel.send({
        t: "results",
        seq: 1,
        parts: [endedPart(first.id!, { n: 100 })],
      });
      await liar.saw("ack");
      liar.channel.send({ t: "bye", reason: "test" });
      await liar.closed;
      await play.settle();
      const [run] = await world.client.runs();
      expect(run!.losses === 0, `${run!.losses} losses`);
    },
  },
];
