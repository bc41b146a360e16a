import { once } from "node:events";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPostOutput } from "../../../../src/launch/stream/post-output.ts";
import { createSender, type Sender } from "../../../../src/launch/stream/sender.ts";
import { makeCertificate, makeKey, pinOf } from "../../../../src/home/certificate.ts";
import { until } from "../../../until.ts";

/** A server that keeps what it receives, as the real one does, and fails on request. */
interface Receiver {
  readonly kept: Map<string, Buffer>;
  readonly tokens: Set<string>;
  /** What to do with the next requests, one each; then all are answered. */
  readonly troubles: ("cut" | "lose-answer" | "busy" | "refuse" | Promise<void>)[];
  requests: number;
  stop(): Promise<void>;
}

let root: string;
let key: string;
let cert: string;
const open: (() => Promise<void>)[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-stream-"));
  key = await makeKey();
  cert = await makeCertificate(key);
});
afterEach(async () => {
  for (const stop of open.splice(0)) await stop();
  await rm(root, { recursive: true, force: true });
});

const endpointFile = (): string => join(root, "server.json");
const senderTo = (rank: number): Sender =>
  createSender(createPostOutput({ launch: 3, endpointFile: endpointFile(), token: "secret" }, rank));

const receive = async (kept = new Map<string, Buffer>()): Promise<Receiver> => {
  const sockets = new Set<Duplex>();
  const receiver: Receiver = { kept, tokens: new Set(), troubles: [], requests: 0, stop: async () => undefined };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const url = new URL(request.url!, "https://x");
    receiver.tokens.add(`${request.headers.authorization} ${url.pathname}`);
    receiver.requests += 1;
    const trouble = receiver.troubles.shift();
    if (trouble instanceof Promise) await trouble;
    if (trouble === "cut") return void request.socket.destroy();
    if (trouble === "busy") return void response.writeHead(503).end("{}");
    if (trouble === "refuse") return void response.writeHead(404).end("{}");
    const name = `${url.searchParams.get("stream")}.${url.searchParams.get("rank")}`;
    const before = kept.get(name) ?? Buffer.alloc(0);
    const offset = Number(url.searchParams.get("offset"));
    const body = Buffer.concat(parts);
    if (offset <= before.length)
      kept.set(name, Buffer.concat([before, body.subarray(Math.min(body.length, before.length - offset))]));
    if (trouble === "lose-answer") return void request.socket.destroy();
    response.writeHead(200).end(JSON.stringify({ size: kept.get(name)?.length ?? 0 }));
  };
  const server: Server = createServer({ key, cert }, (request, response) => void answer(request, response));
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const endpoint = { host: "here", addresses: ["127.0.0.1"], port, keyPin: pinOf(key) };
  await writeFile(`${endpointFile()}.new`, JSON.stringify(endpoint));
  await rename(`${endpointFile()}.new`, endpointFile());
  const stop = async (): Promise<void> => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  open.push(stop);
  return Object.assign(receiver, { stop });
};

describe("a rank's output stream", () => {
  it("arrives whole and in order over cut connections, lost answers and a server that is busy", async () => {
    const receiver = await receive();
    receiver.troubles.push("cut", "lose-answer", "busy");
    const sender = senderTo(2);
    let text = "";
    for (let i = 0; i < 500; i += 1) {
      text += `line ${i}\n`;
      sender.push("stdout", Buffer.from(`line ${i}\n`));
    }
    sender.push("stderr", Buffer.from("warning\n"));
    await sender.finish(30_000);
    expect(receiver.kept.get("stdout.2")?.toString()).toBe(text);
    expect(receiver.kept.get("stderr.2")?.toString()).toBe("warning\n");
    expect([...receiver.tokens]).toEqual(["Bearer secret /api/v1/launches/3/output"]);
  });

  it("keeps what comes while a piece is under way, and asks no more often than it has something to send", async () => {
    const receiver = await receive();
    let answer = (): void => undefined;
    receiver.troubles.push(new Promise((resolve) => void (answer = resolve)));
    const sender = senderTo(0);
    sender.push("stdout", Buffer.from("first\n"));
    await until("the first request", () => receiver.requests > 0);
    sender.push("stdout", Buffer.from("second\n"));
    sender.push("stdout", Buffer.from("third\n"));
    sender.push("stderr", Buffer.from("warning\n"));
    answer();
    await sender.finish(30_000);
    expect(receiver.kept.get("stdout.0")?.toString()).toBe("first\nsecond\nthird\n");
    expect(receiver.kept.get("stderr.0")?.toString()).toBe("warning\n");
    expect(receiver.requests).toBe(3);
  });

  it("rule 11: goes on with a successor at another port, which it finds in the endpoint file", async () => {
    const first = await receive();
    const sender = senderTo(0);
    sender.push("stdout", Buffer.from("before "));
    await until("what was written before", () => first.kept.get("stdout.0")?.toString() === "before ");
    await first.stop();
    sender.push("stdout", Buffer.from("between "));
    const second = await receive(first.kept);
    sender.push("stdout", Buffer.from("after"));
    await sender.finish(30_000);
    expect(second.kept.get("stdout.0")?.toString()).toBe("before between after");
  });

  it("holds a bounded amount while nobody answers, and says what it left out", async () => {
    const sender = senderTo(0);
    const chunk = Buffer.alloc(1024 * 1024, "x");
    for (let i = 0; i < 10; i += 1) sender.push("stdout", chunk);
    const receiver = await receive();
    await sender.finish(30_000);
    const text = receiver.kept.get("stdout.0")!.toString();
    expect(text).toHaveLength(
      4 * 1024 * 1024 + `\n[${6 * 1024 * 1024} bytes are in the job's own output file only]\n`.length,
    );
    expect(text).toMatch(/\n\[6291456 bytes are in the job's own output file only\]\n$/);
  });

  it("ends in time when there is no server, when the key is another's, and when it is refused", async () => {
    const lonely = senderTo(0);
    lonely.push("stdout", Buffer.from("x"));
    await lonely.finish(50);
    const receiver = await receive();
    const { port } = JSON.parse(await readFile(endpointFile(), "utf8")) as { port: number };
    const stranger = { host: "x", addresses: ["127.0.0.1"], port, keyPin: "another" };
    await writeFile(endpointFile(), JSON.stringify(stranger));
    const careful = senderTo(0);
    careful.push("stdout", Buffer.from("x"));
    await careful.finish(300);
    expect(receiver.tokens.size).toBe(0);
    const refusing = await receive();
    refusing.troubles.push("refuse");
    const refused = senderTo(0);
    refused.push("stdout", Buffer.from("x"));
    await refused.finish(30_000);
    refused.push("stdout", Buffer.from("y"));
    expect(refusing.kept.size).toBe(0);
    expect(refusing.tokens.size).toBe(1);
  });
});
