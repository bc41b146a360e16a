import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import type { RunView } from "../../../src/api/schemas.ts";
import { type Client, connect, inBatches } from "../../../src/client/index.ts";
import { type Answer, bodyOf, type FakeServer, fakeServer, json } from "./fake-server.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const setup = async (routes: Record<string, Answer>): Promise<{ server: FakeServer; client: Client }> => {
  const server = await fakeServer(routes);
  cleanups.push(() => server.remove());
  const client = connect({ home: server.home, endpoint: () => server.endpoint() });
  cleanups.push(() => client.close());
  return { server, client };
};

const view = (state: string, done: number): Partial<RunView> => ({
  id: 3,
  state: state as "DONE",
  counts: { DONE: done },
});

function* numbers() {
  for (let i = 0; i < 100_000; i++) yield `item ${i}`;
}

async function* broken(): AsyncGenerator<string[]> {
  yield ["a"];
  throw new Error("cannot read list.txt");
}

test("answers are read, queries are written, the token is sent", async () => {
  let authorization: string | undefined;
  const { server, client } = await setup({
    "GET /server": (request, response) => {
      authorization = request.headers.authorization;
      json({ pid: 1 })(request, response);
    },
    "GET /runs?limit=5": json([]),
    "GET /runs/3/tasks?state=FAILED&limit=2": json([{ id: "3.1" }]),
    "GET /clusters/a%2Fb": json({ name: "a/b" }),
    "POST /runs/3/cancel": async (request, response) =>
      json({ got: JSON.parse(await bodyOf(request)) })(request, response),
  });
  await mkdir(path.join(server.home, "keys"));
  await writeFile(path.join(server.home, "keys", "client.token"), "secret\n");
  expect(await client.server()).toEqual({ pid: 1 });
  expect(authorization).toBe("Bearer secret");
  expect(await client.runs({ limit: 5 })).toEqual([]);
  expect(await client.tasks(3, { state: "FAILED", limit: 2 })).toEqual([{ id: "3.1" }]);
  expect(await client.cluster("a/b")).toEqual({ name: "a/b" });
  expect(await client.cancel(3, { tasks: [17] })).toEqual({ got: { tasks: [17] } });
});

test("errors of the server arrive as they were meant", async () => {
  const { client } = await setup({
    "GET /runs/9": json({ error: { code: "no-such-run", message: "m", hint: "h", facts: { run: 9 } } }, 404),
    "GET /status": (_request, response) => {
      response.writeHead(502);
      response.end("<html>gateway</html>");
    },
  });
  await expect(client.run(9)).rejects.toMatchObject({ code: "no-such-run", message: "there is no run 9" });
  await expect(client.status()).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining("502 <html>"),
  });
});

test("no endpoint is no server; one that does not answer is gone", async () => {
  const { server, client } = await setup({ "GET /server": json({}) });
  const endpoint = await server.endpoint();
  await server.kill();
  await expect(client.server()).rejects.toMatchObject({ code: "no-server" });
  const stale = connect({ home: server.home, endpoint: async () => endpoint });
  await expect(stale.server()).rejects.toMatchObject({ code: "server-gone" });
});

test("a submission streams its items and ends with its last line", async () => {
  const bodies: string[] = [];
  const { client } = await setup({
    "POST /runs": async (request, response) => {
      expect(request.headers["content-type"]).toBe("application/x-ndjson");
      bodies.push(await bodyOf(request));
      json({ run: 3, total: 100_000 }, 201)(request, response);
    },
  });
  const answer = await client.submit({ name: "x", uuid: "u" }, [{ group: 0, batches: () => inBatches(numbers()) }]);
  expect(answer).toEqual({ run: 3, total: 100_000 });
  const lines = bodies[0]!.trimEnd().split("\n");
  expect(JSON.parse(lines[0]!)).toEqual({ name: "x", uuid: "u" });
  expect(lines.at(-1)).toBe('{"end":true}');
  expect(lines.slice(1, -1).flatMap((line) => (JSON.parse(line) as { items: string[] }).items)).toHaveLength(100_000);
});

test("a submission cut off is sent again with the same uuid, unless its source can be read only once", async () => {
  const uuids: string[] = [];
  const { client } = await setup({
    "POST /runs": async (request, response) => {
      uuids.push((JSON.parse((await bodyOf(request)).split("\n")[0]!) as { uuid: string }).uuid);
      if (uuids.length % 2 === 1) request.socket.destroy();
      else json({ run: 3, total: 1 })(request, response);
    },
  });
  expect(await client.submit({ name: "x" }, [{ group: 0, batches: () => inBatches(["a"]) }])).toEqual({
    run: 3,
    total: 1,
  });
  expect(uuids).toHaveLength(2);
  expect(uuids[0]).toBe(uuids[1]);
  const once = client.submit({ name: "x" }, [{ group: 0, batches: () => inBatches(["a"]), once: true }]);
  await expect(once).rejects.toMatchObject({ code: "server-gone" });
  expect(uuids).toHaveLength(3);
});

test("a refusal that comes before the end of the items stops them and is reported", async () => {
  const { client } = await setup({
    "POST /runs": (request, response) => {
      request.once("data", () => {
        request.resume();
        json({ error: { code: "too-many-tasks", facts: { count: 11, limit: 10 } } }, 400)(request, response);
      });
    },
  });
  let given = 0;
  async function* endless() {
    for (;;) {
      given++;
      yield Array.from({ length: 1000 }, () => "x".repeat(100));
    }
  }
  await expect(client.submit({}, [{ group: 0, batches: endless }])).rejects.toMatchObject({ code: "too-many-tasks" });
  const before = given;
  await client.runs().catch(() => undefined);
  expect(given - before).toBeLessThanOrEqual(1);
});

test("an error in the source of the items is the error of the submission", async () => {
  const { client } = await setup({ "POST /runs": (request) => void request.resume() });
  await expect(client.submit({}, [{ group: 0, batches: broken }])).rejects.toThrow("cannot read list.txt");
});

test("watch goes on after a restart of the server and ends with the run", async () => {
  let round = 0;
  const { server, client } = await setup({
    "GET /runs/3/watch": (_request, response) => {
      round++;
      response.write(`${JSON.stringify(view("RUNNING", round))}\n`);
      if (round === 3) response.end(`${JSON.stringify(view("DONE", 9))}\n`);
    },
  });
  const seen: number[] = [];
  const lost: string[] = [];
  for await (const run of client.watch(3, { onLost: (error) => lost.push(error.code) })) {
    seen.push(run.counts["DONE"]!);
    if (round < 3) {
      await server.kill();
      await server.listen();
    }
  }
  expect(seen).toEqual([1, 2, 3, 9]);
  expect(lost).toEqual(["server-gone", "server-gone"]);
});

test("submitAndWatch is one request, and goes on like watch after a restart of the server", async () => {
  const uuids: string[] = [];
  let views = [view("RUNNING", 0), view("RUNNING", 1)];
  const lines = (...values: unknown[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join("");
  const { server, client } = await setup({
    "POST /runs?watch=true": async (request, response) => {
      uuids.push((JSON.parse(await bodyOf(request)) as { uuid: string }).uuid);
      // the first one dies before its answer
      if (uuids.length === 1) return void request.socket.destroy();
      response.write(lines({ run: 3, total: 2 }, ...views));
    },
    "GET /runs/3/watch": (_request, response) => void response.end(lines(...views)),
  });
  const lost: string[] = [];
  const { answer, views: watched } = await client.submitAndWatch(
    { tasks: [] },
    { onLost: (error) => lost.push(error.code) },
  );
  expect(answer).toEqual({ run: 3, total: 2 });
  const seen: unknown[] = [];
  for await (const run of watched) {
    seen.push(run);
    if (seen.length !== 2) continue;
    views = [view("DONE", 2)];
    await server.kill();
    await server.listen();
  }
  expect(seen).toEqual([view("RUNNING", 0), view("RUNNING", 1), view("DONE", 2)]);
  expect(lost).toEqual(["server-gone"]);
  expect(new Set(uuids).size).toBe(1);
  expect(server.requests).toEqual(["POST /runs?watch=true", "POST /runs?watch=true", "GET /runs/3/watch"]);
});

test("a server that knows no watch with a submission is watched after it; what it refuses is thrown", async () => {
  const { server, client } = await setup({
    "POST /runs?watch=true": json({ run: 3, total: 1 }),
    "GET /runs/3/watch": (_request, response) => void response.end(`${JSON.stringify(view("DONE", 1))}\n`),
  });
  const { views } = await client.submitAndWatch({ tasks: [] });
  expect(await views.next()).toEqual({ value: view("DONE", 1), done: false });
  await server.remove();
  const refusing = await setup({ "POST /runs?watch=true": json({ error: { code: "bad-value", facts: {} } }, 400) });
  await expect(refusing.client.submitAndWatch({ tasks: [] })).rejects.toMatchObject({ code: "bad-value" });
});

test("watch gives up when no successor comes, and at once when the run is unknown", async () => {
  const { server, client } = await setup({
    "GET /runs/3/watch": (_request, response) => void response.write(`${JSON.stringify(view("RUNNING", 1))}\n`),
    "GET /runs/4/watch": json({ error: { code: "no-such-run", facts: { run: 4 } } }, 404),
  });
  const unknown = client.watch(4);
  await expect(unknown.next()).rejects.toMatchObject({ code: "no-such-run" });
  const watching = client.watch(3, { patience: 10 });
  await watching.next();
  await server.kill();
  await expect(watching.next()).rejects.toMatchObject({ code: "no-server" });
  // without a server at the start there is nothing to wait for
  await expect(client.watch(3).next()).rejects.toMatchObject({ code: "no-server" });
});

test("an abort ends a quiet stream without an error", async () => {
  const { client } = await setup({
    "GET /events?follow=1": (_request, response) => void response.write('{"seq":1,"event":"a"}\n'),
  });
  const stop = new AbortController();
  const seen: number[] = [];
  for await (const event of client.events({ follow: true, signal: stop.signal })) {
    seen.push(event.seq);
    setImmediate(() => stop.abort());
  }
  expect(seen).toEqual([1]);
});

test("events go on where a slow reader was dropped, none twice", async () => {
  const { server, client } = await setup({
    "GET /events?follow=1&run=3": (_request, response) =>
      void response.end('{"seq":1,"event":"a"}\n{"seq":2,"event":"b"}\n{"resume":2}\n'),
    "GET /events?follow=1&run=3&since=2": (_request, response) =>
      void response.write('{"seq":2,"event":"b"}\n{"seq":3,"event":"c"}\n'),
  });
  const seen: number[] = [];
  for await (const event of client.events({ follow: true, run: 3 })) {
    seen.push(event.seq);
    if (event.seq === 3) break;
  }
  expect(seen).toEqual([1, 2, 3]);
  expect(server.requests).toEqual(["GET /events?follow=1&run=3", "GET /events?follow=1&run=3&since=2"]);
});

test("of a successor, which counts its events anew, all are told", async () => {
  let round = 0;
  const answer = (_request: unknown, response: { write(text: string): void }): void =>
    response.write(`{"seq":${round++ === 0 ? 7 : 1},"event":"a"}\n`);
  // the first begins now; a successor has nothing from before
  const { server, client } = await setup({ "GET /events?follow=1": answer, "GET /events?follow=1&since=0": answer });
  const seen: number[] = [];
  for await (const event of client.events({ follow: true })) {
    seen.push(event.seq);
    if (seen.length === 2) break;
    await server.kill();
    await server.listen();
  }
  expect(seen).toEqual([7, 1]);
});

test("output comes byte by byte for a task, in pieces for a run", async () => {
  const bytes = Buffer.from([0, 255, 10, 200]);
  const { client } = await setup({
    "GET /runs/3/tasks/17/logs?stream=stderr": (_request, response) => void response.end(bytes),
    "GET /runs/3/logs?stream=stdout&follow=1": (_request, response) =>
      void response.end(`{"task":"3.1","data":"${bytes.toString("base64")}"}\n`),
  });
  const pieces: Buffer[] = [];
  for await (const piece of client.taskLogs(3, 17, { stream: "stderr" })) pieces.push(piece);
  expect(Buffer.concat(pieces)).toEqual(bytes);
  for await (const { task, data } of client.logs(3, { follow: true })) expect([task, data]).toEqual(["3.1", bytes]);
});
